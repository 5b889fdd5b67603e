"""Make the default model from scratch, from the download of data to the model card.

    python -m train.reproduce --trees ../trees --teachers ../teachers --out runs/default

The command fetches the data sets for training and evaluation into `data`, or into the folder that the
environment variable `SIMLLM_DATA` names. It fetches the repositories of configs/repositories.tsv (for
training) and configs/unseen_repositories.tsv (for testing) into `--trees`, each at one revision. Repositories
that exist there are not changed. `--teachers` is the folder with the two teachers (larger models whose
embeddings the model learns to imitate), in the folders `all-mpnet-base-v2` and `all-MiniLM-L6-v2`. Then the
command prints and runs one step after the other. Rerun the same command to resume: finished trainings are not
repeated. All steps take an estimated fourteen hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from train.data.corpus_repositories import fetch_repository, read_repositories
from train.data.remote_repository import GITHUB
from train.runtime import signal_handlers
from train.runtime.data_root import data_root
from train.runtime.tool_exit_status import run_tool

# The data sets that the configurations of the recipe name.
_SETS = "emse_deepcom misc_nl code_paraphrases word_pairs breaking_nli counterfactual_nli snli_dev".split()
_SETS += "paws_wiki cannot_wikifactcheck haque2022 shen2021_leclair stsb_en sick".split()
_TEACHERS = ("all-mpnet-base-v2", "all-MiniLM-L6-v2")  # the new model starts from weights of the second
_LABELLED = ("*nli*.jsonl.gz", "paws_wiki.jsonl.gz", "cannot_wikifactcheck.jsonl.gz")
_RATED = ("haque2022", "shen2021_leclair")
# Outputs of the steps, with the names that the configurations use.
_RUNS = Path("runs")
_CORPUS, _UNSEEN, _DISTILLED = _RUNS / "repositories", _RUNS / "unseen-repositories", _RUNS / "distill"
_TRAIN, _TEST = _CORPUS / "train.txt", _CORPUS / "test.txt"
_GLOSSES, _HELD_OUT_PAIRS = _RUNS / "glosses.txt", _RUNS / "held-out.jsonl"
_NEIGHBOURS, _WORDNET = _RUNS / "neighbours.jsonl", _RUNS / "wordnet.jsonl"
_CONTROL_WORDNET = _RUNS / "wordnet-held-out.jsonl"
# Folder names of the stages after distillation. A mixture ("mixed") is the weighted mean of the models before
# and after a stage. The average is the mean of the models of one round of the stage of triplets, one for each
# seed.
_MEANING, _MIXED, _ITEMS, _MIXED_2 = "meaning", "mixed", "items", "mixed-2"
_TRIPLETS, _AVERAGE, _HEAD = "triplets", "average", "head"
# End of the folder names of the control model, which is trained without the words that decide the contrast
# set (test triples).
_CONTROL = "-control"
# The weights of two losses in the last round of the stage of triplets.
_LAST_ROUND = ["triplet_weight=3", "overlap.weight=8"]
_HEAD_ONLY = [
    "head_only=true",
    "updates=4000",
    "warmup_updates=50",
    "learning_rate=5e-4",
    "evaluate_every=500",
]


def main() -> int:
    """Parse the command line, make the default model, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trees", type=Path, required=True, help="folder of the cloned repositories")
    parser.add_argument("--teachers", type=Path, required=True, help="folder of the teachers' folders")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/default"), help="default: %(default)s")
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="default: %(default)s"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="take the data sets from this folder and fetch none"
    )
    parser.add_argument("--host", default=GITHUB, help="where all repositories are; default: %(default)s")
    parser.add_argument(
        "--seeds",
        type=int,
        default=2,
        help="runs in each round of the stage of triplets; default: %(default)s",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=4,
        help="rounds of the stage of triplets; default: %(default)s",
    )
    options = parser.parse_args()
    return run_tool(lambda: reproduce(Recipe(**vars(options))))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The options for making the default model: paths, and the number of training runs and rounds.

    Attributes:
        trees: Folder for the repositories with comments, which are fetched if they are missing.
        teachers: Folder with the folders of both teachers (larger models, which the model imitates).
        out: The model folder to make.
        wordnet: Folder of WordNet's database files.
        data: Folder of the data sets; None: the data sets are fetched.
        host: Where all repositories are: a URL such as "https://github.com", to which "/owner/name" is
            appended, or a local folder of repositories.
        seeds: Number of runs in each round of the training on triplets (a text, a rewording, and a text with
            another meaning). The runs of a round differ in the random seed. Their encoders are averaged.
        rounds: Number of rounds of the training on triplets. Each round after the first starts from the
            averaged encoder of the round before.
    """

    trees: Path
    teachers: Path
    out: Path
    wordnet: Path
    data: Path | None
    host: str
    seeds: int
    rounds: int


def reproduce(recipe: Recipe) -> None:
    """Make the default model of simllm: fetch its data, and run all steps that are not finished.

    Args:
        recipe: The options: paths, and the number of training runs and rounds (see `Recipe`).

    Raises:
        InputError: `recipe.seeds` or `recipe.rounds` is less than 1, a folder is missing, a repository cannot
            be fetched, an output is older than the file from which it is made, or a folder to write exists
            that simllm did not write.
        SystemExit: A step failed; the exit status is that of the step.
    """
    for name in ("seeds", "rounds"):
        if getattr(recipe, name) < 1:
            raise InputError(f"--{name} {getattr(recipe, name)}: expected 1 or more")
    needed = [recipe.wordnet, *(recipe.teachers / name for name in _TEACHERS)]
    for folder in (*needed, *([recipe.data] if recipe.data else [])):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    stages = [_MEANING, _MIXED, _ITEMS, _MIXED_2, _HEAD]
    stages = [stage + suffix for stage in stages for suffix in ("", _CONTROL)]
    for number in range(1, recipe.rounds + 1):
        stages += [*_triplet_runs(number, recipe.seeds), *_triplet_runs(number, 1, _CONTROL)]
        stages += [_round_name(_AVERAGE, number) + suffix for suffix in ("", _CONTROL)]
    for folder in (_CORPUS, _UNSEEN, _DISTILLED, *(_RUNS / stage for stage in stages), recipe.out):
        OutputFolder(folder).check()
    lists = [
        read_repositories(Path("configs", name)) for name in ("repositories.tsv", "unseen_repositories.tsv")
    ]
    data = str(recipe.data or data_root())
    remaining_commands(recipe, data, [], [])  # refuses outdated files before the first step
    if not recipe.data:
        _run(["train.data", "fetch", *_SETS, "--root", data, "--host", recipe.host], data)
    trees, unseen_trees = (
        [fetch_repository(recipe.trees, *entry, recipe.host) for entry in entries] for entries in lists
    )
    for command in remaining_commands(recipe, data, trees, unseen_trees):
        _run(command, data)


def _run(command: list[str], data: str) -> None:
    """Print a command and run it; exit with its status if it fails.

    Args:
        command: The Python module and its arguments.
        data: The folder of the data sets. The command gets it in the environment variable `SIMLLM_DATA`.
    """
    print("$ python -m " + " ".join(command), file=sys.stderr)
    environment = {**os.environ, "SIMLLM_DATA": data}  # for the configurations of all steps
    if status := signal_handlers.run_forwarding_signals([sys.executable, "-m", *command], environment):
        sys.exit(status)


def is_up_to_date(output: Path, source: Path) -> bool:
    """Return whether an output file exists; raise InputError if it exists but is outdated.

    Args:
        output: The output file.
        source: The file from which `output` is made.

    Returns:
        True if `output` exists and is not older than `source`; False if `output` does not exist.

    Raises:
        InputError: `output` exists, but is outdated: it is older than `source`, or `source` is missing.
    """
    if not output.exists():
        return False
    if not source.exists() or output.stat().st_mtime < source.stat().st_mtime:
        raise InputError(f"{output}: was not made from {source}, which is newer or missing; move it away")
    return True


def _round_name(stage: str, number: int) -> str:
    """Return the name of the folder that a training stage writes in one of its rounds (repetitions).

    For example, the stage "triplets" writes "triplets" in round 1, and "triplets-round2" in round 2.
    """
    return stage if number == 1 else f"{stage}-round{number}"


def _triplet_runs(number: int, seeds: int, suffix: str = "") -> list[str]:
    """Return the names of the run folders in one round of the training on triplets.

    A triplet is a text, a rewording, and a text with another meaning. The runs of a round differ in the
    random seed. For example, the two runs of round 2 are "triplets-round2" and "triplets-round2-seed2".

    Args:
        number: The number of the round, from 1.
        seeds: The number of runs in the round.
        suffix: A text to add after the round: "", or "-control" for the control model. The control model is
            trained without the word pairs of the contrast set, a test set.
    """
    stage = _round_name(_TRIPLETS, number) + suffix
    return [stage, *(f"{stage}-seed{seed}" for seed in range(2, seeds + 1))]


def remaining_commands(
    recipe: Recipe, data: str, trees: list[Path], unseen_trees: list[Path]
) -> list[list[str]]:
    """Return the commands that are still needed to make the default model, in order.

    A command that prepares data is left out if its output exists. Commands that train, mix and release
    models are always included. If a training is already finished, its command does not repeat it.

    Args:
        recipe: The options: paths, and the number of training runs and rounds (see `Recipe`).
        data: Folder of the data sets.
        trees: The folders of the fetched repositories for training.
        unseen_trees: The folders of the fetched repositories for testing.

    Returns:
        For each command, the Python module and its arguments.

    Raises:
        InputError: A file of prepared data exists, but the corpus from which it is made is newer or missing.
    """
    rated = [f"{data}/rated/{name}.jsonl" for name in _RATED]
    wordnet, train = str(recipe.wordnet), str(_TRAIN)
    pairs = "train.contrastive.wordnet_pairs"
    steps = []
    if not (_CORPUS / "corpus.json").is_file():
        built = ["train.corpus", "build", *map(os.fspath, trees), "--installed-python"]
        steps.append([*built, "--exclude", *rated, "--out", str(_CORPUS)])
    if not (_UNSEEN / "corpus.json").is_file():
        steps.append(["train.corpus", "build", *map(os.fspath, unseen_trees), "--out", str(_UNSEEN)])
    if not _GLOSSES.exists():
        steps.append(["train.distill.wordnet_glosses", wordnet, str(_GLOSSES)])
    if not _HELD_OUT_PAIRS.exists():
        labelled = [f"{data}/meaning/{name}" for name in _LABELLED]
        steps.append(["train.data.hold_out_pairs", *labelled, "-o", str(_HELD_OUT_PAIRS)])
    for output, command in (
        (_WORDNET, [pairs, wordnet, train, str(_WORDNET)]),
        (_CONTROL_WORDNET, [pairs, wordnet, train, str(_CONTROL_WORDNET), "--hold-out-contrast"]),
        (_NEIGHBOURS, ["train.contrastive.lexical_neighbours", train, str(_NEIGHBOURS), "--pairs", "24000"]),
    ):
        if not is_up_to_date(output, _TRAIN):
            steps.append(command)
    teachers = [str(recipe.teachers / name) for name in _TEACHERS]
    named = [f"teachers=[{', '.join(teachers)}]", f"start.teacher={teachers[1]}"]
    steps.append(["train.distill", "configs/distill.yaml", *named])
    steps += _contrastive_stages("", _WORDNET, teachers[1], recipe.rounds, recipe.seeds, [])
    without_words = ["hold_out_contrast=true"]
    steps += _contrastive_stages(_CONTROL, _CONTROL_WORDNET, teachers[1], recipe.rounds, 1, without_words)
    return [*steps, _release_command(recipe, rated[1])]


def _mix(run: str, mixed: str, starts: list[Path], share: float) -> list[str]:
    """Return the command that mixes the encoder weights of a trained model with those of other models.

    The mixed weights are share * (mean weights of `starts`) + (1 - share) * (weights of the run's model).

    Args:
        run: The name of the folder of a training run, which has the trained model.
        mixed: The name of the model folder to write.
        starts: The model folders of the other models. For example, the other model is the one from which the
            training run started.
        share: The share of the other models in the mixture, from 0 to 1.

    Returns:
        The Python module and its arguments.
    """
    command = ["train.release.mix_weights", str(_RUNS / run), str(_RUNS / mixed)]
    return [*command, "--start", *map(str, starts), "--share", f"{share:.4g}"]


def _contrastive_stages(
    suffix: str, wordnet: Path, teacher: str, rounds: int, seeds: int, overrides: list[str]
) -> list[list[str]]:
    """Return the commands of all stages after distillation.

    1. The encoder is trained together with the meaning head (a network that predicts whether two texts have
       the same meaning). Afterwards, the new weights of the encoder are mixed with its old weights.
    2. Training and mixing are repeated, with other data. These include meaning items. A meaning item has a
       main text, rewordings, and texts with other meanings.
    3. The encoder is trained on triplets (a text, a rewording, a text with another meaning), and to imitate
       the embeddings of a larger encoder. This stage has `rounds` rounds. A round has `seeds` runs, whose
       weights are averaged. The next round starts from this average. Later rounds know better what changes
       the meaning, but the scores of the first round's model agree better with human ratings. So half of
       the average with which the last round starts is the first round's, and the average of the last round
       includes its start. In the last round, the losses of triplets and of shared words weigh more.
    4. The meaning head alone is trained, from the weights of the head of the second stage.

    Args:
        suffix: The suffix of the folders to write: "", or "-control" for the control model. The control model
            is trained without the word pairs of the contrast set, a test set. An example is the pair
            "attaches" and "detaches": one text of that set has the first word where another has the second.
        wordnet: The file of text pairs from WordNet, such as words and definitions.
        teacher: The folder of the larger encoder.
        rounds: The number of rounds of the third stage.
        seeds: The number of runs in each round, each with another random seed.
        overrides: `key=value` items that change the configuration of the trainings.
    """
    meaning, mixed, items, mixed_2 = (stage + suffix for stage in (_MEANING, _MIXED, _ITEMS, _MIXED_2))
    train, more = "train.contrastive", [f"positives.3.source={wordnet}", *overrides]
    commands = [
        [
            train,
            "configs/meaning.yaml",
            f"positives.2.source={wordnet}",
            *overrides,
            f"out={_RUNS / meaning}",
        ],
        _mix(meaning, mixed, [_DISTILLED / "model"], 0.35),
        [train, "configs/items.yaml", *more, f"model={_RUNS / mixed}", f"out={_RUNS / items}"],
        _mix(items, mixed_2, [_RUNS / mixed], 0.75),
    ]
    start = _RUNS / mixed_2
    averages: list[Path] = []
    for number in range(1, rounds + 1):
        runs = [_RUNS / name for name in _triplet_runs(number, seeds, suffix)]
        is_last = number == rounds > 1
        weights = _LAST_ROUND if is_last else []
        for seed, run in enumerate(runs, (number - 1) * seeds + 1):
            changed = [f"imitation.teachers=[{teacher}]", f"model={start}", f"seed={seed}", f"out={run}"]
            commands.append([train, "configs/triplets.yaml", *more, *weights, *changed])
        others = [run / "model" for run in runs[1:]] + ([start] if is_last else [])
        if 1 < number == rounds - 1:  # as often as there are runs: half of the average is the first round's
            others += averages[:1] * seeds
        start = runs[0] / "model"
        if others:
            start = _RUNS / (_round_name(_AVERAGE, number) + suffix)
            commands.append(_mix(runs[0].name, start.name, others, len(others) / (len(others) + 1)))
        averages.append(start)
    head = [*_HEAD_ONLY, f"model={start}", f"meaning.start={_RUNS / mixed_2}"]
    return [*commands, [train, "configs/items.yaml", *more, *head, f"out={_RUNS / _HEAD}{suffix}"]]


def _release_command(recipe: Recipe, rated: str) -> list[str]:
    """Return the command that makes the released model folder from the trained models.

    Args:
        recipe: The options of the recipe. Only `out`, `rounds` and `seeds` are used.
        rated: The file of rated text pairs to which the score scale is fitted. The scale converts a score to
            an expected human rating.

    Returns:
        The Python module and its arguments.
    """
    test = str(_TEST)
    numbers = range(1, recipe.rounds + 1)
    triplets = [run for number in numbers for run in _triplet_runs(number, recipe.seeds)]
    runs = [_DISTILLED, *(_RUNS / stage for stage in (_MEANING, _ITEMS, *triplets, _HEAD))]
    release = ["train.release", *map(str, runs)]
    release += ["--out", str(recipe.out), "--held-out", f"{_RUNS / _HEAD}{_CONTROL}"]
    release += ["--notes", "checkpoints/notes.md", "--centre", test, "--calibrate", test, rated]
    release += ["--calibrate-meaning", str(_HELD_OUT_PAIRS)]
    ablations = Path("checkpoints/ablations.json")
    if ablations.is_file():
        release += ["--ablations", str(ablations)]
    return release


if __name__ == "__main__":
    sys.exit(main())
