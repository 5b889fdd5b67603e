"""The recipe of the default model: repositories and commands."""

import fnmatch
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from tests.conftest import ROOT
from train import reproduce
from train.code_reader.task import CodeReaderConfig
from train.contrastive.config import ContrastiveConfig
from train.contrastive.grades import GradesConfig
from train.corpus import source_trees
from train.corpus.parts import Tally
from train.data import catalog
from train.data.catalog import Catalog
from train.data.repositories import fetch_repository, read_repositories
from train.distill.config import DistillConfig
from train.release.measure import MeasureConfig
from train.reproduce import Recipe, remaining_commands
from train.runtime.config import load

STAGES = ("distill", "meaning", "items", "triplets", "longer", "near", "rated", "head", "measure")


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_repository_is_fetched_once_at_its_revision(tmp_path):
    origin = tmp_path / "host" / "owner" / "name"
    origin.mkdir(parents=True)
    git(origin, "init", "--quiet")
    revisions = []
    for text in ("first", "second"):
        (origin / "file.py").write_text(text)
        git(origin, "add", ".")
        git(origin, "commit", "--quiet", "-m", text)
        revisions.append(git(origin, "rev-parse", "HEAD"))
    host = (tmp_path / "host").as_uri()
    trees = tmp_path / "trees"
    fetched = fetch_repository(trees, "owner/name", revisions[0], host)
    assert fetched == trees / "owner+name" / "repo"
    assert git(fetched, "show", "HEAD:file.py") == "first"
    assert [code.data for code in source_trees.read_folder(fetched, 0, Tally())] == [b"first"]
    # A fetched repository is used unchanged.
    assert fetch_repository(trees, "owner/name", revisions[1], "file:///nowhere") == fetched
    assert git(fetched, "show", "HEAD:file.py") == "first"
    with pytest.raises(InputError, match="owner/other: cannot be fetched at"):
        fetch_repository(trees, "owner/other", revisions[0], host)
    assert not (trees / "owner+other" / "repo").exists()


def test_missing_revision_leaves_no_files(tmp_path):
    origin = tmp_path / "host" / "owner" / "name"
    origin.mkdir(parents=True)
    git(origin, "init", "--quiet")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "only")
    host = (tmp_path / "host").as_uri()
    with pytest.raises(InputError, match="owner/name: cannot be fetched at 0123"):
        fetch_repository(tmp_path / "trees", "owner/name", "0123" * 10, host)
    assert not list((tmp_path / "trees").rglob("HEAD"))


def test_recipe_lists_its_repositories_and_missing_files(call, tmp_path):
    named = read_repositories(ROOT / "configs" / "repositories.tsv")
    more = read_repositories(ROOT / "configs" / "more_repositories.tsv")
    code = read_repositories(ROOT / "configs" / "code_repositories.tsv")
    unseen = read_repositories(ROOT / "configs" / "unseen_repositories.tsv")
    assert len(named) > 10
    assert len(more) > 50
    assert len(code) > 150
    every = [*named, *more, *code, *unseen]
    assert all(len(revision) == 40 and name.count("/") == 1 for name, revision in every)
    assert len(dict(every)) == len(every)
    done = call(reproduce, "--trees", tmp_path, "--teachers", tmp_path, "--wordnet", tmp_path / "none")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no such folder" in done.stderr


_TREES = ("tree", "more", "code", "unseen")


def steps_of(folder, seeds, rounds):
    places = dict.fromkeys(("trees", "teachers", "wordnet"), folder) | {"out": folder / "out"}
    recipe = Recipe(**places, data=None, host="", seeds=seeds, rounds=rounds)
    return remaining_commands(recipe, "data", *([folder / name] for name in _TREES))


def test_every_step_of_the_recipe_can_be_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a checkout may have outputs of some steps
    steps = steps_of(tmp_path, seeds=2, rounds=2)
    assert {step[0].rpartition(".")[2] for step in steps} >= {
        "corpus", "wordnet_glosses", "hold_out_pairs", "wordnet_pairs", "lexical_neighbours", "comment_pairs",
        "rated_teacher", "distill",
        "contrastive", "release", "pairs", "code_reader", "measure",
    }  # fmt: skip
    assert all(find_spec(step[0]) for step in steps)
    built = [step for step in steps if step[:2] == ["train.corpus", "build"]]
    assert [step[2] for step in built] == [str(tmp_path / name) for name in ("tree", "more", "unseen")]
    unseen = load(MeasureConfig, ROOT / "configs" / "measure.yaml", []).unseen_comments
    assert Path(unseen).parent == Path(built[2][-1])
    (distill,) = (step for step in steps if step[0] == "train.distill")
    distilled = load(DistillConfig, ROOT / distill[1], distill[2:])
    assert {Path(teacher).parent for teacher in distilled.teachers} == {tmp_path}
    assert distilled.start.teacher == distilled.teachers[1]
    trained = [step for step in steps if step[0] == "train.contrastive"]
    runs = [load(ContrastiveConfig, ROOT / step[1], step[2:]) for step in trained]
    second, items, *rounds, longer, near, like_people, like_people_2, head = runs[:11]
    controls = runs[11:]
    triplets, triplets_2, *round_2 = rounds
    assert [run.seed for run in runs] == [1, 1, 1, 2, 3, 4, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1]
    assert [run.hold_out_contrast for run in runs] == [False] * 11 + [True] * 8
    assert [run for run in runs if run.head_only] == [head, controls[7]]
    rated = [like_people, like_people_2]
    assert [run for run in runs if run.imitation] == [*rounds, longer, near, *rated, *controls[2:7]]
    assert {run.imitation.teachers for run in (*rounds, longer)} == {distilled.teachers[1:]}
    assert {run.model for run in (second, controls[0])} == {f"{distilled.out}/model"}
    mixes = [step for step in steps if step[0] == "train.release.mix_weights"]
    mixed = {mix[2]: mix[1] for mix in mixes}  # the run that each mixture is made from
    assert [mixed[run.model] for run in (items, triplets)] == [second.out, items.out]
    assert [mixed[run.model] for run in controls[1:3]] == [controls[0].out, controls[1].out]
    assert triplets_2.model == triplets.model
    first, last = (mix for model in (round_2[0].model, longer.model) for mix in mixes if mix[2] == model)
    assert first[1:] == [triplets.out, first[2], "--start", f"{triplets_2.out}/model", "--share", "0.5"]
    assert round_2[0].model == round_2[1].model == first[2]
    starts = [f"{round_2[1].out}/model", first[2]]  # the last average includes the start of the last round
    assert last[1:] == [round_2[0].out, longer.model, "--start", *starts, "--share", "0.6667"]
    assert [(run.triplet_weight, run.overlap.weight) for run in rounds] == [(2, 4), (2, 4), (3, 8), (3, 8)]
    assert controls[3].model == f"{controls[2].out}/model"
    (control,) = (mix for mix in mixes if mix[2] == controls[4].model)
    assert [mixed[run.model] for run in (near, controls[5])] == [longer.out, controls[4].out]
    assert [mixed[run.model] for run in (*rated, controls[6])] == [near.out, near.out, controls[5].out]
    (average,) = (mix for mix in mixes if mix[2] == head.model)
    assert average[1:4] == [like_people.out, head.model, "--start"]
    assert average[4:] == [f"{like_people_2.out}/model", "--share", "0.5"]
    assert controls[7].model == f"{controls[6].out}/model"
    (taught,) = (step for step in steps if step[0] == "train.contrastive.rated_teacher")
    assert taught[1] == distilled.teachers[0]
    assert {run.imitation.teachers for run in rated} == {(taught[2],)}
    for run in (near, controls[5]):
        assert run.imitation.teachers == (distilled.teachers[1], run.model, distilled.teachers[0])
    assert control[1:] == [controls[3].out, controls[4].model, "--start", controls[3].model, "--share", "0.5"]
    assert [head.meaning.start, controls[7].meaning.start] == [triplets.model, controls[2].model]
    (release,) = (step for step in steps if step[0] == "train.release")
    trained = [
        distilled.out,
        second.out,
        items.out,
        *(run.out for run in (*rounds, longer, near, *rated, head)),
    ]
    assert release[1 : len(trained) + 1] == trained
    grades = load(GradesConfig, ROOT / release[release.index("--grades") + 1], [])
    assert {source.scale for source in grades.sources} == {(0, 5)}
    assert controls[7].out in release
    *_, collected, unseen_pairs, reader, measured = steps
    assert [step[0] for step in (collected, unseen_pairs)] == ["train.code_reader.pairs"] * 2
    assert collected[1:4] == [str(tmp_path / name) for name in _TREES[:3]]
    config = load(CodeReaderConfig, ROOT / reader[1], reader[2:])
    assert (config.model, config.pairs, config.start) == (str(tmp_path / "out"), collected[-1], "")
    assert f"{config.out}/model" in measured
    assert {unseen_pairs[-1], str(tmp_path / "out"), str(tmp_path / "code")} <= set(measured)
    assert measured[measured.index("--dev") + 1] == collected[-1]


@pytest.mark.parametrize("option", ["--seeds", "--rounds"])
def test_there_is_at_least_one_run(call, tmp_path, option):
    folders = ["--trees", tmp_path, "--teachers", tmp_path, "--wordnet", tmp_path]
    done = call(reproduce, *folders, option, 0)
    assert (done.returncode, done.stderr) == (2, f"error: {option} 0: expected 1 or more\n")


def test_seeds_differ_in_all_rounds(tmp_path):
    steps = steps_of(tmp_path, seeds=3, rounds=2)
    seeds = [word for step in steps for word in step if word.startswith("seed=")]
    numbers = (1, 2, 3, 4, 5, 6, 1, 2, 3, 1, 2, 1)  # triplets and ratings, and those of the control model
    assert seeds == [f"seed={seed}" for seed in numbers]


def test_encoders_of_three_seeds_have_equal_parts_of_the_average(tmp_path):
    steps = steps_of(tmp_path, seeds=3, rounds=1)
    (average,) = (step for step in steps if step[2:3] == ["runs/average"])
    assert average[-4:] == [
        "runs/triplets-seed2/model", "runs/triplets-seed3/model", "--share", "0.6667",
    ]  # fmt: skip


def test_start_of_the_last_round_is_half_the_first_round(tmp_path):
    steps = steps_of(tmp_path, seeds=2, rounds=4)
    mixes = {step[2]: step[4:] for step in steps if step[0] == "train.release.mix_weights"}
    second, third = "runs/triplets-round2-seed2/model", "runs/triplets-round3-seed2/model"
    assert mixes["runs/average-round2"] == [second, "--share", "0.5"]
    assert mixes["runs/average-round3"] == [third, "runs/average", "runs/average", "--share", "0.75"]
    fourth = "runs/triplets-round4-seed2/model"
    assert mixes["runs/average-round4"] == [fourth, "runs/average-round3", "--share", "0.6667"]
    heavier = [step[-1] for step in steps if "overlap.weight=8" in step]
    assert heavier == [
        "out=runs/triplets-round4",
        "out=runs/triplets-round4-seed2",
        "out=runs/triplets-round4-control",
    ]


@pytest.mark.parametrize("seeds", [1, 2])
def test_each_step_reads_what_earlier_steps_made(tmp_path, monkeypatch, seeds):
    monkeypatch.chdir(tmp_path)  # a checkout may have outputs of some steps
    configs = {"train.distill": DistillConfig, "train.contrastive": ContrastiveConfig}
    configs["train.code_reader"] = CodeReaderConfig
    made = set()
    for step in steps_of(tmp_path, seeds=seeds, rounds=2):
        words, output = step[1:], reproduce._output(step)
        if step[0] in configs:
            words = [repr(load(configs[step[0]], ROOT / step[1], step[2:]))]
        if step[0] == "train.release":
            words.append(repr(load(MeasureConfig, ROOT / "configs" / "measure.yaml", [])))
            words.append(repr(load(GradesConfig, ROOT / "configs" / "grades.yaml", [])))
        for path in re.findall(r"\bruns/[^\s,'\]]+", " ".join(words)):
            assert Path(path) == output or any(Path(path).is_relative_to(one) for one in made), (step, path)
        assert output not in made, output
        made.add(output)
    assert {Path("runs/head"), Path("runs/code-pairs.jsonl"), tmp_path / "out", tmp_path / "code"} <= made


def command(*arguments):
    """Run `python -m train.reproduce` in a new process."""
    words = [sys.executable, "-m", "train.reproduce", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def teachers(tmp_path):
    """Return a folder that has an empty folder in place of each teacher model."""
    for name in reproduce._TEACHERS:
        (tmp_path / "teachers" / name).mkdir(parents=True)
    return tmp_path / "teachers"


def test_the_data_sets_are_fetched_first(tmp_path, teachers, monkeypatch):
    monkeypatch.setenv("SIMLLM_DATA", str(tmp_path / "data"))
    options = ["--trees", tmp_path, "--teachers", teachers, "--wordnet", tmp_path]
    done = command(*options, "--host", "file:///nowhere")
    assert done.returncode == 2
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("$ python -m train.data fetch emse_deepcom ")
    assert last.startswith(
        "error: corpus/emse_deepcom.jsonl.gz: similarityMetrics/similarityMetrics: cannot be"
    )
    assert not (tmp_path / "data" / "corpus").exists()


def test_every_data_file_that_the_configurations_name_is_fetched():
    table = load(Catalog, catalog.CATALOG_FILE, [])
    fetched = [file.path for one in table.choose(reproduce._SETS) for file in one.files]
    names = [ROOT / "configs" / f"{name}.yaml" for name in STAGES]
    named = {path for name in names for path in re.findall(r"\$\{data\}/(\S+)", name.read_text())}
    assert len(named) > 10
    also_rated = load(MeasureConfig, ROOT / "configs" / "measure.yaml", []).also_rated
    stages = "".join(name.read_text() for name in names[:-1])
    named -= {path for path in named if path not in stages and any(path in file for file in also_rated)}
    for path in named:
        assert fnmatch.filter(fetched, path), path


def test_existing_data_are_not_fetched_again(tmp_path, teachers):
    options = ["--trees", tmp_path / "trees", "--teachers", teachers, "--wordnet", tmp_path]
    done = command(*options, "--data", tmp_path, "--host", "file:///nowhere")
    assert done.returncode == 2
    assert "train.data" not in done.stderr
    assert "cannot be fetched at" in done.stderr.splitlines()[-1]


@pytest.fixture
def checkout(tmp_path, teachers, monkeypatch):
    """Return an empty checkout; its list `steps` records the steps of the recipe, which are not run."""
    for folder in ("shared/data", "wordnet", "checkout/configs", "checkout/runs"):
        (tmp_path / folder).mkdir(parents=True)
    for prefix in ("", "more_", "code_", "unseen_"):
        (tmp_path / "checkout" / "configs" / f"{prefix}repositories.tsv").touch()
    monkeypatch.chdir(tmp_path / "checkout")
    steps = []
    monkeypatch.setattr(
        reproduce.signals, "run_forwarding_signals", lambda command, _: steps.append(command[2])
    )
    return SimpleNamespace(folder=tmp_path / "checkout", steps=steps)


def recipe(call, checkout):
    root = checkout.folder.parent
    options = ["--trees", root / "trees", "--teachers", root / "teachers", "--wordnet", root / "wordnet"]
    return call(reproduce, *options, "--out", "runs/default", "--data", root / "wordnet")


def test_finished_files_are_not_made_again(call, checkout):
    assert recipe(call, checkout).returncode == 0
    assert checkout.steps.count("train.contrastive.wordnet_pairs") == 2
    for corpus in ("repositories", "more", "unseen-repositories"):
        with OutputFolder(checkout.folder / "runs" / corpus, "a corpus").replacing() as partial:
            for name in ("train.txt", "corpus.json"):
                (partial / name).write_text("{}\n")
    with OutputFolder(checkout.folder / "runs" / "rated-teacher", "a teacher").replacing() as partial:
        (partial / "training.json").write_text("{}\n")
    for name in (
        "glosses.txt",
        "held-out.jsonl",
        "comment-pairs.jsonl",
        "neighbours.jsonl",
        "wordnet.jsonl",
        "wordnet-held-out.jsonl",
        "code-pairs.jsonl",
        "code-pairs-unseen.jsonl",
    ):
        (checkout.folder / "runs" / name).write_text("{}\n")
    checkout.steps.clear()
    assert recipe(call, checkout).returncode == 0
    trained = {"train.distill", "train.contrastive", "train.release.mix_weights", "train.release"}
    trained |= {"train.code_reader", "train.code_reader.measure"}
    assert set(checkout.steps) == trained

    training_texts = checkout.folder / "runs" / "repositories" / "train.txt"
    os.utime(training_texts, (2**32, 2**32))  # because the corpus was built again
    checkout.steps.clear()
    done = recipe(call, checkout)
    assert (done.returncode, checkout.steps) == (2, [])
    made = "was not made from runs/repositories/train.txt, which is newer or missing; move it away"
    assert done.stderr == f"error: runs/wordnet.jsonl: {made}\n"


@pytest.mark.parametrize(
    "name",
    [
        "distill",
        "mixed",
        "mixed-3",
        "mixed-4",
        "triplets-round3-seed2",
        "average-round2",
        "items-control",
        "rated-seed2",
        "rated-average",
        "rated-control",
        "code-reader",
        "code",
        "default",
        "repositories",
        "more",
        "unseen-repositories",
        "rated-teacher",
    ],
)
def test_user_files_are_refused_before_the_first_step(call, checkout, name):
    (checkout.folder / "runs" / name).mkdir()
    (checkout.folder / "runs" / name / "notes.txt").write_text("mine\n")
    done = recipe(call, checkout)
    assert (done.returncode, checkout.steps) == (2, [])
    assert f"runs/{name}: holds files that simllm did not write" in done.stderr


def test_exit_status_of_a_failed_step_is_returned(call, checkout, monkeypatch):
    monkeypatch.setattr(reproduce.signals, "run_forwarding_signals", lambda *_: 75)
    assert recipe(call, checkout).returncode == 75
