"""Make the default model from scratch: from the network to its card.

    python -m train.reproduce --trees ../trees --out runs/default

Fetches the data sets of the recipe into `data`, or the folder that the environment variable
`SIMLLM_DATA` names. Fetches the repositories of configs/repositories.tsv into `--trees`, each at its
revision without its history, and leaves those that are there as they are. Then it runs one command
after the other, and prints each. Rerun the same command to resume: finished steps are skipped. All
steps take hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files, folders
from train.data.origin import GITHUB, Origin
from train.runtime import signals
from train.runtime.config import data_root
from train.runtime.tool_command import run_tool

# The data sets that the configurations of the recipe name.
_SETS = "emse_deepcom java_tlc_csn python_wan2018 python_edinburgh misc_nl funcom_useloss".split()
_SETS += "code_paraphrases unrated_java haque2022 shen2021_leclair stsb_en sick semeval_sts".split()
# What the configs call the outputs of the steps.
_CORPUS, _FIRST, _TWIN = Path("runs/repositories"), Path("runs/mini"), Path("runs/contrastive-held-out")
_WORDNET = (Path("runs/wordnet.jsonl"), Path("runs/wordnet-held-out.jsonl"))
# A shorter run that learns nothing about the words of the contrast set.
_HELD_OUT = ["hold_out_contrast=true", f"positives.3.source={_WORDNET[1]}", "updates=1000"]
_RATED = ("haque2022", "shen2021_leclair")


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trees", type=Path, required=True, help="folder of the cloned repositories")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/default"), help="default: %(default)s")
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="default: %(default)s"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="take the data sets from this folder and fetch none"
    )
    parser.add_argument("--host", default=GITHUB, help="where all repositories are; default: %(default)s")
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs of the second stage (default: %(default)s)"
    )
    options = parser.parse_args()
    return run_tool(lambda: _reproduce(options))


def _reproduce(options: argparse.Namespace) -> None:
    """Run all steps; exit with the status of a step that fails."""
    for folder in (options.wordnet, *([options.data] if options.data else [])):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    for folder in (_CORPUS, _FIRST, *_second_runs(options.seeds), _TWIN, options.out):
        folders.check(folder)
    for file in _WORDNET:
        made(file, _FIRST / "corpus" / "train.txt")
    named = repositories(Path("configs/repositories.tsv"))
    if options.data:
        os.environ["SIMLLM_DATA"] = str(options.data)  # the configurations of all steps read it
    else:
        _run(["train.data", "fetch", *_SETS, "--root", data_root(), "--host", options.host])
    trees = [tree(options.trees, *entry, options.host) for entry in named]
    for command in commands(options, trees):
        _run(command)


def _run(command: list[str]) -> None:
    """Print a command and run it; exit with its status if it fails."""
    print("$ python -m " + " ".join(command), file=sys.stderr)
    if status := signals.run_forwarding_signals([sys.executable, "-m", *command]):
        sys.exit(status)


def made(output: Path, source: Path) -> bool:
    """Whether the file `output` has been made from `source`.

    Raises InputError if `output` exists but is older than `source`, or `source` is missing.
    """
    if not output.exists():
        return False
    if not source.exists() or output.stat().st_mtime < source.stat().st_mtime:
        raise InputError(f"{output}: was not made from {source}, which is newer or missing; move it away")
    return True


def _second_runs(seeds: int) -> list[Path]:
    """Return the folders of the second stage's runs, one for each seed."""
    return [Path("runs/contrastive"), *(Path(f"runs/contrastive-{seed}") for seed in range(2, seeds + 1))]


def repositories(file: Path) -> list[tuple[str, str]]:
    """Return owner/name and revision of each repository in the file."""
    rows = [(number, line.split("\t")) for number, line in files.lines(file) if not line.startswith("#")]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(f"{file}, line {number}: expected owner/name and a revision, with a tab between")
    return [(name, revision) for _, (name, revision) in rows]


def tree(folder: Path, name: str, revision: str, host: str) -> Path:
    """Return the path of a bare repository with HEAD at the revision; fetch it if it is missing.

    The corpus decides by the last two folders of the path which texts are held out.
    """
    path = folder / name.replace("/", "+") / "repo"
    if not path.is_dir():
        with folders.replacing(path) as partial:
            Origin(name, revision, host, partial).fetch_all()
    return path


def commands(options: argparse.Namespace, trees: list[Path]) -> list[list[str]]:
    """Return the commands of all steps that are not finished, as one would type them."""
    rated = [f"{data_root()}/rated/{name}.jsonl" for name in _RATED]
    train, test = (str(_FIRST / "corpus" / name) for name in ("train.txt", "test.txt"))
    steps = []
    if not (_CORPUS / "corpus.json").is_file():
        built = ["train.corpus", "build", *map(os.fspath, trees), "--out", str(_CORPUS)]
        steps.append([*built, "--exclude", *rated])
    steps.append(["train.pretrain", "configs/mini.yaml"])
    for file, *more in ((_WORDNET[0],), (_WORDNET[1], "--hold-out-contrast")):
        if not made(file, Path(train)):
            steps.append(["train.contrastive.wordnet_pairs", str(options.wordnet), train, str(file), *more])
    second = ["train.contrastive", "configs/contrastive.yaml"]
    runs = [str(run) for run in _second_runs(options.seeds)]
    steps += [[*second, f"seed={seed}", f"out={run}"] for seed, run in enumerate(runs, 1)]
    steps.append([*second, f"out={_TWIN}", *_HELD_OUT])
    release = ["train.release", str(_FIRST), runs[0], "--start-share", "0.15"]
    release += ["--out", str(options.out), "--held-out", str(_TWIN)]
    release += ["--notes", "checkpoints/notes.md", "--centre", test]
    release += ["--seeds", *runs[1:]]
    ablations = Path("checkpoints/ablations.json")
    if ablations.is_file():
        release += ["--ablations", str(ablations)]
    calibrate = ["train.release.calibrate", str(options.out), "--comments", test]
    return [*steps, release, [*calibrate, "--ratings", rated[1]], ["train.release.golden", str(options.out)]]


if __name__ == "__main__":
    sys.exit(main())
