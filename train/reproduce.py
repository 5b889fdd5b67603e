"""Make the default model from scratch, from the download of data to the model card.

    python -m train.reproduce --trees ../trees --teachers teachers --out runs/default

The command fetches the data sets for training and evaluation into `data`, or into the folder that the
environment variable `SIMLLM_DATA` names. It fetches the repositories of configs/repositories.tsv (for
training), configs/more_repositories.tsv (for the longer stage), configs/code_repositories.tsv (for the code
reader) and configs/unseen_repositories.tsv (for testing) into `--trees`, each at one revision. Repositories
that exist there are not changed. `--teachers` is the folder with the two teachers (larger models whose
embeddings the model learns to imitate), in the folders `all-mpnet-base-v2` and `all-MiniLM-L6-v2`; the card
compares the model with those in `teachers`. Then the command prints and runs one step after the other. Rerun
the same command to resume: finished trainings are not repeated. All steps take an estimated twenty-one hours
on two cores.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from train.data.repositories import GITHUB, fetch_repository, read_repositories
from train.runtime import signals
from train.runtime.command import make_parser, run_command
from train.runtime.config import data_root

# The data sets that the configurations of the recipe name.
_SETS = "emse_deepcom misc_nl general code_paraphrases word_pairs breaking_nli counterfactual_nli".split()
_SETS += "snli_dev paws_wiki cannot_wikifactcheck haque2022 shen2021_leclair stsb_en sick semeval_sts".split()
# The new model starts from weights of the second.
_TEACHERS = ("all-mpnet-base-v2", "all-MiniLM-L6-v2")
_LABELLED = ("*nli*.jsonl.gz", "paws_wiki.jsonl.gz", "cannot_wikifactcheck.jsonl.gz")
_RATED = ("haque2022", "shen2021_leclair")
# Pairs that evaluate the model, or that are not for any use (MSRpar in sts2012).
_UNSEEN_SENTENCES = ("stsb_en/dev", "stsb_en/test", "sick/test_annotated", "semeval_sts/sts2012")
_RATED_CODE = "shen2021_leclair"  # rated summaries, together with the code that they describe
# Outputs of the steps, with the names that the configurations use.
_RUNS = Path("runs")
_CORPUS, _MORE, _UNSEEN = _RUNS / "repositories", _RUNS / "more", _RUNS / "unseen-repositories"
_DISTILLED = _RUNS / "distill"
_TRAIN, _TEST = _CORPUS / "train.txt", _CORPUS / "test.txt"
_GLOSSES, _HELD_OUT_PAIRS = _RUNS / "glosses.txt", _RUNS / "held-out.jsonl"
_NEIGHBOURS, _WORDNET = _RUNS / "neighbours.jsonl", _RUNS / "wordnet.jsonl"
_COMMENT_PAIRS = _RUNS / "comment-pairs.jsonl"
_RATED_TEACHER = _RUNS / "rated-teacher"
_CODE_READER = _RUNS / "code-reader"
_CODE_PAIRS, _UNSEEN_CODE_PAIRS = _RUNS / "code-pairs.jsonl", _RUNS / "code-pairs-unseen.jsonl"
_CONTROL_WORDNET = _RUNS / "wordnet-held-out.jsonl"
# Folder names of the stages after distillation. A mixture ("mixed") is the weighted mean of the models before
# and after a stage. An average is the mean of the models of one stage or round, one for each seed.
_MEANING, _MIXED, _ITEMS, _MIXED_2 = "meaning", "mixed", "items", "mixed-2"
_MIXED_3, _MIXED_4 = "mixed-3", "mixed-4"
_TRIPLETS, _AVERAGE, _LONGER, _NEAR = "triplets", "average", "longer", "near"
_LIKE_PEOPLE, _RATED_AVERAGE, _HEAD = "rated", "rated-average", "head"
# End of the folder names of the control model, which is trained without the words that decide the contrast
# set (test triples).
_CONTROL = "-control"
# The weights of two losses in the last round of the stage of triplets.
_LAST_ROUND = ["triplet_weight=3", "overlap.weight=8"]


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.reproduce", __doc__)
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
        help="runs in each round of the stage of triplets, and of that of ratings; default: %(default)s",
    )
    parser.add_argument(
        "--rounds", type=int, default=4, help="rounds of the stage of triplets; default: %(default)s"
    )
    return run_command(parser, lambda **options: reproduce(Recipe(**options)))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The options for making the default model.

    Attributes:
        trees: Folder for the repositories with comments, which are fetched if they are missing.
        teachers: Folder with the folders of both teachers.
        out: The model folder to make.
        wordnet: Folder of WordNet's database files.
        data: Folder of the data sets; None: the data sets are fetched.
        host: A URL such as "https://github.com", to which "/owner/name" is appended, or a local folder.
        seeds: Runs in each round of the stage of triplets, and of the stage that learns people's ratings.
            They differ in the random seed, and their encoders are averaged.
        rounds: Rounds of the stage of triplets. Each starts from the average of the round before.
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
    """Fetch the data, and run all steps that are not finished.

    Raises SystemExit with the status of a step that failed.
    """
    for name in ("seeds", "rounds"):
        if getattr(recipe, name) < 1:
            raise InputError(f"--{name} {getattr(recipe, name)}: expected 1 or more")
    needed = [recipe.wordnet, *(recipe.teachers / name for name in _TEACHERS)]
    for folder in (*needed, *([recipe.data] if recipe.data else [])):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    prefixes = ("", "more_", "code_", "unseen_")
    lists = [read_repositories(Path("configs", f"{prefix}repositories.tsv")) for prefix in prefixes]
    data = str(recipe.data or data_root())
    # Outdated files, and folders of something else, must stop the recipe now, not after hours.
    for command in remaining_commands(recipe, data, [], [], [], []):
        OutputFolder(_output(command)).check()
    if not recipe.data:
        _run(["train.data", "fetch", *_SETS, "--root", data, "--host", recipe.host], data)
    trees = [[fetch_repository(recipe.trees, *entry, recipe.host) for entry in entries] for entries in lists]
    for command in remaining_commands(recipe, data, *trees):
        _run(command, data)


def _run(command: list[str], data: str) -> None:
    """Print a command (module and arguments) and run it; exit with its status if it fails."""
    print("$ python -m " + shlex.join(command), file=sys.stderr)
    # For the configurations of all steps.
    environment = {**os.environ, "SIMLLM_DATA": data}
    if status := signals.run_forwarding_signals([sys.executable, "-m", *command], environment):
        sys.exit(status)


def _output(command: list[str]) -> Path:
    """Return the file or folder that a command of the recipe makes."""
    for option in ("--release", "--out", "-o"):
        if option in command:
            return Path(command[command.index(option) + 1])
    for word in command:
        if word.startswith("out="):
            return Path(word.removeprefix("out="))
    return Path(command[3 if command[0] == "train.contrastive.wordnet_pairs" else 2])


def is_up_to_date(output: Path, source: Path) -> bool:
    """Return whether an output exists; raise InputError if it is older than its source, or has none."""
    if not output.exists():
        return False
    if not source.exists() or output.stat().st_mtime < source.stat().st_mtime:
        raise InputError(f"{output}: was not made from {source}, which is newer or missing; move it away")
    return True


def _round_name(stage: str, number: int) -> str:
    """Return the folder of a stage in one round: "triplets" in round 1, "triplets-round2" in round 2."""
    return stage if number == 1 else f"{stage}-round{number}"


def _runs(stage: str, seeds: int) -> list[str]:
    """Return the run folders of a stage or round, such as "triplets-round2" and "triplets-round2-seed2"."""
    return [stage, *(f"{stage}-seed{seed}" for seed in range(2, seeds + 1))]


def remaining_commands(
    recipe: Recipe,
    data: str,
    trees: list[Path],
    more_trees: list[Path],
    code_trees: list[Path],
    unseen_trees: list[Path],
) -> list[list[str]]:
    """Return the commands that are still needed, in order: for each, the module and its arguments.

    A command that prepares data is left out if its output exists. Commands that train, mix and release are
    always included; they do not repeat what is finished.
    """
    rated = [f"{data}/rated/{name}.jsonl" for name in _RATED]
    wordnet, train = str(recipe.wordnet), str(_TRAIN)
    pairs = "train.contrastive.wordnet_pairs"
    steps = []
    without_rated = ["--exclude", *rated]
    for corpus, sources, options in (
        (_CORPUS, trees, ["--installed-python", *without_rated]),
        (_MORE, more_trees, without_rated),
        (_UNSEEN, unseen_trees, []),
    ):
        if not (corpus / "corpus.json").is_file():
            built = ["train.corpus", "build", *map(os.fspath, sources), *options]
            steps.append([*built, "--out", str(corpus)])
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
    if not is_up_to_date(_COMMENT_PAIRS, _TRAIN):
        comments = [str(_CORPUS / "comments.jsonl"), str(_COMMENT_PAIRS)]
        steps.append(["train.contrastive.comment_pairs", *comments, "--teachers", *teachers])
    if not (_RATED_TEACHER / "training.json").is_file():
        unseen = [*(f"{data}/sts/{name}.jsonl" for name in _UNSEEN_SENTENCES), str(_HELD_OUT_PAIRS)]
        learnt = ["--rated", f"{data}/sts/stsb_en/train.jsonl", "--exclude", *unseen]
        steps.append(["train.contrastive.rated_teacher", teachers[0], str(_RATED_TEACHER), *learnt])
    named = [f"teachers=[{','.join(teachers)}]", f"start.teacher={teachers[1]}", f"out={_DISTILLED}"]
    steps.append(["train.distill", "configs/distill.yaml", *named])
    steps += _contrastive_stages("", _WORDNET, teachers, recipe.rounds, recipe.seeds, [])
    without_words = ["hold_out_contrast=true"]
    # The control model is trained without the deciding words of the contrast set, and with one seed.
    steps += _contrastive_stages(_CONTROL, _CONTROL_WORDNET, teachers, recipe.rounds, 1, without_words)
    steps.append(_release_command(recipe))
    return [*steps, *_code_reader_commands(recipe, data, [*trees, *more_trees, *code_trees], unseen_trees)]


def _code_reader_commands(
    recipe: Recipe, data: str, trees: list[Path], unseen_trees: list[Path]
) -> list[list[str]]:
    """Return the commands that make the code reader of the released model, in the folder `code` beside it."""
    rated, commands = [f"{data}/rated/{name}.jsonl" for name in _RATED], []
    for pairs, sources in ((_CODE_PAIRS, trees), (_UNSEEN_CODE_PAIRS, unseen_trees)):
        if not pairs.exists():
            collect = ["train.code_reader.pairs", *map(os.fspath, sources), "--exclude", *rated]
            commands.append([*collect, "--out", str(pairs)])
    train = ["train.code_reader", "configs/code.yaml", f"model={recipe.out}", f"out={_CODE_READER}"]
    measure = ["train.code_reader.measure", "--pairs", str(_UNSEEN_CODE_PAIRS)]
    measure += ["--model", str(_CODE_READER / "model"), "--summaries", str(recipe.out)]
    measure += ["--rated", f"{data}/rated/{_RATED_CODE}.jsonl", "--dev", str(_CODE_PAIRS)]
    measure += ["--release", str(recipe.out.with_name("code"))]
    return [*commands, train, measure]


def _mix(run: str, mixed: str, starts: list[Path], share: float) -> list[str]:
    """Return the command that mixes `share` of the mean of `starts` into the model of a run."""
    command = ["train.release.mix_weights", str(_RUNS / run), str(_RUNS / mixed)]
    return [*command, "--start", *map(str, starts), "--share", f"{share:.4g}"]


def _average(commands: list[list[str]], run: Path, others: list[Path], name: str) -> Path:
    """Return the mean of the model of a run and other models, after adding the command that makes it."""
    if not others:
        return run / "model"
    commands.append(_mix(run.name, name, others, len(others) / (len(others) + 1)))
    return _RUNS / name


def _contrastive_stages(
    suffix: str, wordnet: Path, teachers: list[str], rounds: int, seeds: int, overrides: list[str]
) -> list[list[str]]:
    """Return the commands of all stages after distillation (terms: see `train.contrastive`).

    1. The encoder is trained together with the meaning head. Its new weights are mixed with its old ones.

    2. The same again, with other data, which include meaning items.

    3. The encoder is trained on triplets (a text, a rewording, a text with another meaning), and to imitate
    the second teacher. This stage has `rounds` rounds of `seeds` runs, whose weights are averaged.

    4. The encoder imitates that teacher on many more texts, beside triplets. It is mixed with its start.

    5. The encoder learns how similar near texts are, from both teachers and its start. It is mixed with that.

    6. The encoder learns from a teacher that people's ratings have taught how similar sentences are. The
    weights of `seeds` runs are averaged.

    7. The meaning head alone is trained, from the weights of the head of the second stage.

    `suffix` is that of the folders, and `wordnet` the file of text pairs from WordNet.
    """
    meaning, mixed, items, mixed_2 = (stage + suffix for stage in (_MEANING, _MIXED, _ITEMS, _MIXED_2))
    teacher = teachers[1]
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
        runs = [_RUNS / name for name in _runs(_round_name(_TRIPLETS, number) + suffix, seeds)]
        is_last = number == rounds > 1
        # In the last round, the losses of triplets and of shared words weigh more.
        weights = _LAST_ROUND if is_last else []
        for seed, run in enumerate(runs, (number - 1) * seeds + 1):
            changed = [f"imitation.teachers=[{teacher}]", f"model={start}", f"seed={seed}", f"out={run}"]
            commands.append([train, "configs/triplets.yaml", *more, *weights, *changed])
        # The average of the last round includes its start.
        others = [run / "model" for run in runs[1:]] + ([start] if is_last else [])
        # Later rounds know better what changes the meaning, but the scores of the first round's model agree
        # better with human ratings. So half of the average with which the last round starts is the first
        # round's: it is added as often as there are runs.
        if 1 < number == rounds - 1:
            others += averages[:1] * seeds
        start = _average(commands, runs[0], others, _round_name(_AVERAGE, number) + suffix)
        averages.append(start)
    longer = _RUNS / (_LONGER + suffix)
    changed = [f"imitation.teachers=[{teacher}]", f"model={start}", f"out={longer}"]
    commands.append([train, "configs/longer.yaml", *more, *changed])
    mixed_3, near, mixed_4 = (stage + suffix for stage in (_MIXED_3, _NEAR, _MIXED_4))
    commands.append(_mix(longer.name, mixed_3, [start], 0.5))
    start = _RUNS / mixed_3
    imitated = f"imitation.teachers=[{teacher},{start},{teachers[0]}]"
    commands.append([train, "configs/near.yaml", *more, imitated, f"model={start}", f"out={_RUNS / near}"])
    commands.append(_mix(near, mixed_4, [start], 0.15))
    runs = [_RUNS / name for name in _runs(_LIKE_PEOPLE + suffix, seeds)]
    for seed, run in enumerate(runs, 1):
        changed = [f"model={_RUNS / mixed_4}", f"seed={seed}", f"out={run}"]
        commands.append([train, "configs/rated.yaml", *overrides, *changed])
    start = _average(commands, runs[0], [run / "model" for run in runs[1:]], _RATED_AVERAGE + suffix)
    head = [f"model={start}", f"meaning.start={_RUNS / mixed_2}", f"out={_RUNS / (_HEAD + suffix)}"]
    return [*commands, [train, "configs/head.yaml", *overrides, *head]]


def _release_command(recipe: Recipe) -> list[str]:
    """Return the command that makes the released model folder."""
    test = str(_TEST)
    numbers = range(1, recipe.rounds + 1)
    triplets = [run for number in numbers for run in _runs(_round_name(_TRIPLETS, number), recipe.seeds)]
    stages = _MEANING, _ITEMS, *triplets, _LONGER, _NEAR, *_runs(_LIKE_PEOPLE, recipe.seeds), _HEAD
    runs = [_DISTILLED, *(_RUNS / stage for stage in stages)]
    release = ["train.release", *map(str, runs)]
    release += ["--out", str(recipe.out), "--held-out", f"{_RUNS / _HEAD}{_CONTROL}"]
    release += ["--notes", "checkpoints/notes.md", "--centre", test, "--calibrate", test]
    release += ["--calibrate-meaning", str(_HELD_OUT_PAIRS), "--grades", "configs/grades.yaml"]
    ablations = Path("checkpoints/ablations.json")
    if ablations.is_file():
        release += ["--ablations", str(ablations)]
    return release


if __name__ == "__main__":
    sys.exit(main())
