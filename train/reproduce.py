"""Make the default model from scratch, from the download of data to the model card.

    python -m train.reproduce --trees ../trees --out runs/default

The command fetches the data sets of the recipe into `data`, or into the folder that the environment
variable `SIMLLM_DATA` names. It fetches the repositories of configs/repositories.tsv into `--trees`,
each at one revision; repositories that exist there are not changed. Then it prints and runs one
command after the other. Rerun the same command to resume: finished steps are skipped. All steps take
hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files, folders
from train.data.remote_repository import GITHUB, RemoteRepository
from train.runtime import signals
from train.runtime.config import data_root
from train.runtime.tool_command import run_tool

# The data sets that the configurations of the recipe name.
_SETS = "emse_deepcom misc_nl code_paraphrases word_pairs breaking_nli counterfactual_nli snli_dev".split()
_SETS += "paws_wiki cannot_wikifactcheck haque2022 shen2021_leclair stsb_en sick".split()
# Outputs of the steps, with the names that the configurations use.
_CORPUS, _GLOSSES, _HELD_OUT = (
    Path("runs/repositories"),
    Path("runs/glosses.txt"),
    Path("runs/held-out.jsonl"),
)
_WORDNET = (Path("runs/wordnet.jsonl"), Path("runs/wordnet-held-out.jsonl"))
_DISTILLED, _CONTROL = Path("runs/distill"), Path("runs/meaning-control")
# The control model is trained without the deciding words of the contrast set.
_WITHOUT_WORDS = ["hold_out_contrast=true", f"positives.2.source={_WORDNET[1]}"]
_RATED = ("haque2022", "shen2021_leclair")
_LABELLED = ("*nli*", "paws_wiki", "cannot_wikifactcheck")
_TEACHERS = ("all-mpnet-base-v2", "all-MiniLM-L6-v2")


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trees", type=Path, required=True, help="folder of the cloned repositories")
    parser.add_argument(
        "--teachers", type=Path, required=True, help=f"folder with the models {' and '.join(_TEACHERS)}"
    )
    parser.add_argument("--out", type=Path, default=Path("checkpoints/default"), help="default: %(default)s")
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="default: %(default)s"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="take the data sets from this folder and fetch none"
    )
    parser.add_argument("--host", default=GITHUB, help="where all repositories are; default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, help="runs of the last stage (default: %(default)s)")
    options = parser.parse_args()
    return run_tool(lambda: reproduce(Recipe(**vars(options))))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The places that the steps read and write, and the number of runs.

    Attributes:
        trees: Folder of the cloned repositories.
        teachers: Folder of the teachers' folders.
        out: The model folder to make.
        wordnet: Folder of WordNet's files.
        data: Folder of the data sets; None fetches them.
        host: Where all repositories are.
        seeds: Number of runs of the last stage.
    """

    trees: Path
    teachers: Path
    out: Path
    wordnet: Path
    data: Path | None
    host: str
    seeds: int


def reproduce(recipe: Recipe) -> None:
    """Run all steps; exit with the status of a step that fails."""
    teachers = [recipe.teachers / name for name in _TEACHERS]
    for folder in (recipe.wordnet, *teachers, *([recipe.data] if recipe.data else [])):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    for folder in (_CORPUS, _DISTILLED, *_last_runs(recipe.seeds), _CONTROL, recipe.out):
        folders.check(folder)
    for file in _WORDNET:
        is_up_to_date(file, _CORPUS / "train.txt")
    repositories = read_repositories(Path("configs/repositories.tsv"))
    data = str(recipe.data or data_root())
    if not recipe.data:
        _run(["train.data", "fetch", *_SETS, "--root", data, "--host", recipe.host], data)
    trees = [fetch_repository(recipe.trees, *entry, recipe.host) for entry in repositories]
    for command in remaining_commands(recipe, data, trees):
        _run(command, data)


def _run(command: list[str], data: str) -> None:
    """Print a command and run it with the data sets of a folder; exit with its status if it fails."""
    print("$ python -m " + " ".join(command), file=sys.stderr)
    environment = {**os.environ, "SIMLLM_DATA": data}  # for the configurations of all steps
    if status := signals.run_forwarding_signals([sys.executable, "-m", *command], environment):
        sys.exit(status)


def is_up_to_date(output: Path, source: Path) -> bool:
    """Return whether a file exists and is newer than the file that it is made from.

    Raises:
        InputError: `output` exists, but is older than `source`, or `source` is missing.
    """
    if not output.exists():
        return False
    if not source.exists() or output.stat().st_mtime < source.stat().st_mtime:
        raise InputError(f"{output}: was not made from {source}, which is newer or missing; move it away")
    return True


def _last_runs(seeds: int) -> list[Path]:
    """Return the folders of the runs of the last stage, one for each seed."""
    return [Path("runs/meaning"), *(Path(f"runs/meaning-{seed}") for seed in range(2, seeds + 1))]


def read_repositories(file: Path) -> list[tuple[str, str]]:
    """Read the owner/name and the revision of each repository; raise InputError for a wrong line."""
    rows = [(number, line.split("\t")) for number, line in files.lines(file) if not line.startswith("#")]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(f"{file}, line {number}: expected owner/name and a revision, with a tab between")
    return [(name, revision) for _, (name, revision) in rows]


def fetch_repository(folder: Path, name: str, revision: str, host: str) -> Path:
    """Return the path of a bare repository with HEAD at a revision; fetch it if it is missing.

    The corpus chooses the held-out texts by a hash of the last two folders of this path.
    """
    path = folder / name.replace("/", "+") / "repo"
    if not path.is_dir():
        with folders.replacing(path) as partial:
            RemoteRepository(name, revision, host, partial).fetch_all()
    return path


def remaining_commands(recipe: Recipe, data: str, trees: list[Path]) -> list[list[str]]:
    """Return the commands of all steps that are not finished: modules and arguments.

    Args:
        recipe: The recipe.
        data: Folder of the data sets.
        trees: The repositories.
    """
    rated = [f"{data}/rated/{name}.jsonl" for name in _RATED]
    labelled = [f"{data}/meaning/{name}.jsonl.gz" for name in _LABELLED]
    train, test = (str(_CORPUS / name) for name in ("train.txt", "test.txt"))
    steps = []
    if not (_CORPUS / "corpus.json").is_file():
        built = ["train.corpus", "build", *map(os.fspath, trees), "--installed-python"]
        steps.append([*built, "--out", str(_CORPUS), "--exclude", *rated])
    if not _GLOSSES.exists():
        steps.append(["train.distill.glosses", str(recipe.wordnet), str(_GLOSSES)])
    if not _HELD_OUT.exists():
        steps.append(["train.data.hold_out", *labelled, "-o", str(_HELD_OUT)])
    for file, *more in ((_WORDNET[0],), (_WORDNET[1], "--hold-out-contrast")):
        if not is_up_to_date(file, Path(train)):
            steps.append(["train.contrastive.wordnet_pairs", str(recipe.wordnet), train, str(file), *more])
    teachers = [str(recipe.teachers / name) for name in _TEACHERS]
    overrides = [f"teachers=[{', '.join(teachers)}]", f"start.teacher={teachers[1]}"]
    steps.append(["train.distill", "configs/distill.yaml", f"out={_DISTILLED}", *overrides])
    last = ["train.contrastive", "configs/meaning.yaml"]
    runs = [str(run) for run in _last_runs(recipe.seeds)]
    steps += [[*last, f"seed={seed}", f"out={run}"] for seed, run in enumerate(runs, 1)]
    steps.append([*last, f"out={_CONTROL}", *_WITHOUT_WORDS])
    release = ["train.release", str(_DISTILLED), runs[0], "--out", str(recipe.out)]
    release += ["--held-out", str(_CONTROL), "--notes", "checkpoints/notes.md", "--centre", test]
    release += ["--calibrate", test, rated[1], "--calibrate-meaning", str(_HELD_OUT), "--seeds", *runs[1:]]
    ablations = Path("checkpoints/ablations.json")
    if ablations.is_file():
        release += ["--ablations", str(ablations)]
    return [*steps, release]


if __name__ == "__main__":
    sys.exit(main())
