"""The ablation command, on short runs."""

import json
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from simllm.model import saved_model
from simllm.text_cleaning import clean
from tests.conftest import ROOT
from train.contrastive.config import ContrastiveConfig
from train.distill.config import DistillConfig
from train.pretrain.config import PretrainConfig
from train.release import ablations
from train.release.ablations import AblationsConfig, training_commands
from train.release.card import _ablations
from train.release.refresh import summarize_ablations
from train.runtime.config import load


@pytest.fixture
def small(model_folder, sets, corpus_file, comments, tmp_path):
    """Write the configuration of an ablation: a recipe with few optimizer steps, and two variants.

    One variant changes nothing in the recipe; the other variant changes the first stage.
    """
    rated = yaml.safe_load(sets.read_text())["rated"][0]
    (tmp_path / "train.txt").write_text("".join(text + "\n" for text in sorted(set(map(clean, comments)))))
    texts = str(tmp_path / "train.txt")
    recipe = yaml.safe_load((ROOT / "configs" / "contrastive.yaml").read_text()) | {
        "model": str(model_folder), "positives": [{"source": texts, "share": 1, "fields": []}],
        "rated": [], "overlap": None, "exclude": [], "dev": [rated], "dev_comments": texts, "pairs": 16,
        "updates": 2, "warmup_updates": 1, "evaluate_every": 2,
    }  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    first = [f"corpus.sources=[{corpus_file}]", "model.vocab_size=600", "model.hidden_size=32"]
    first += ["model.intermediate_size=64", "updates=2", "warmup_updates=1", "evaluate_every=2"]
    values = {
        "recipe": str(tmp_path / "recipe.yaml"), "measure": str(sets), "out": str(tmp_path / "runs"),
        "overrides": ["seed=3"],
        "first_stage": {"training": "train.pretrain", "recipe": "configs/debug.yaml", "overrides": first},
        "variants": [
            {"name": "no change"}, {"name": "masked, short", "first_stage": ["objective=masked"]},
        ],
    }  # fmt: skip
    file = tmp_path / "ablations.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


FIGURES = {"signature": "s", "spearman": {"set": {"simllm": {"rho": 0.5}}}, "contrast": {"simllm": {}}}


@pytest.fixture
def trained(monkeypatch):
    """Replace training and measuring by stand-ins, and return the commands that would have been run.

    The n-th training command gets the exit status `status[n]`; by default, this is 0.
    """
    commands = []

    def train(command):
        commands.append(command[2:])
        return status.get(len(commands), 0)

    status = {}
    monkeypatch.setattr(ablations.signals, "run_forwarding_signals", train)
    monkeypatch.setattr(ablations, "measure", lambda model, sets: FIGURES | {"model": str(model)})
    return SimpleNamespace(commands=commands, status=status)


@pytest.fixture
def ablate(call, small, tmp_path):
    """Return a function that runs the command on the small configuration, optionally with other variants."""

    def ablate(*options, variants=None):
        if variants:
            small.write_text(yaml.safe_dump(yaml.safe_load(small.read_text()) | {"variants": variants}))
        return call(ablations, small, "-o", tmp_path / "ablations.json", *options)

    return ablate


def rows_of(tmp_path):
    return json.loads((tmp_path / "ablations.json").read_text())


@pytest.mark.slow
def test_ablation_trains_and_measures_every_variant(ablate, tmp_path):
    done = ablate()
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path)
    assert [row["variant"] for row in rows] == ["no change", "masked, short"]
    assert rows[0]["spearman"] != rows[1]["spearman"]
    made = saved_model.load(tmp_path / "runs" / "masked-short" / "model").info.provenance
    assert made["config"]["seed"] == 3
    assert made["start"]["objective"] == "masked language modelling"
    title, _, table = _ablations(summarize_ablations(tmp_path / "ablations.json"))
    assert title == "## Ablations"
    assert f"| masked, short | {rows[1]['spearman']['set/rated']['simllm']['rho']:.3f} |" in table


def test_finished_variants_are_not_trained_again(ablate, trained, tmp_path):
    assert ablate().returncode == 0
    rows = rows_of(tmp_path)
    assert [row["variant"] for row in rows] == ["no change", "masked, short"]
    assert [row["model"] for row in rows] == [
        f"{tmp_path}/runs/{x}/model" for x in ("no-change", "masked-short")
    ]
    assert [command for row in rows for command in row["commands"]] == trained.commands
    assert [command[0] for command in trained.commands] == [
        "train.contrastive", "train.pretrain", "train.contrastive",
    ]  # fmt: skip
    (tmp_path / "ablations.json").write_text(json.dumps(rows[:1]))
    assert ablate().returncode == 0
    assert len(trained.commands) == 5  # only the second variant was trained again
    assert rows_of(tmp_path) == rows


def test_invalid_settings_are_errors_before_any_training(ablate, trained, tmp_path):
    done = ablate(variants=[{"name": "good"}, {"name": "a typo", "overrides": ["updats=1"]}])
    assert (done.returncode, trained.commands) == (2, [])
    assert done.stderr.startswith("error: a typo: ")
    assert "unknown key updats" in done.stderr
    assert not (tmp_path / "ablations.json").exists()


def test_unknown_module_for_the_first_stage_is_an_error(ablate, small, trained):
    values = yaml.safe_load(small.read_text())
    values["first_stage"]["training"] = "train.corpus"
    small.write_text(yaml.safe_dump(values))
    done = ablate()
    assert (done.returncode, trained.commands) == (2, [])
    wrong = "first_stage: training must be one of train.pretrain, train.distill, not 'train.corpus'"
    assert done.stderr == f"error: {small}: {wrong}\n"


def test_results_are_kept_when_another_variant_fails(ablate, trained, tmp_path):
    variants = [{"name": name, "overrides": [f"updates={n}"]} for n, name in enumerate("abc", 2)]
    assert ablate(variants=variants[2:]).returncode == 0
    trained.status[3] = 1
    done = ablate(variants=variants)
    assert (done.returncode, done.stderr) == (2, "error: b: training ended with exit status 1\n")
    assert [row["variant"] for row in rows_of(tmp_path)] == ["a", "c"]


@pytest.mark.parametrize("status", [75, 130])
def test_signal_that_stops_a_training_stops_the_command(ablate, trained, tmp_path, status):
    trained.status[1] = status
    done = ablate()
    assert (done.returncode, done.stderr) == (status, "stopped; rerun the same command to resume\n")
    assert len(trained.commands) == 1


@pytest.mark.parametrize(
    "content", ['{"mine": 1}', '[{"variant": "no change"}]', "[1]", "text", b"\xff", '[{"variant": 1}]']
)
def test_foreign_output_file_is_kept(ablate, trained, tmp_path, content):
    output = tmp_path / "ablations.json"
    output.write_bytes(content if isinstance(content, bytes) else content.encode())
    before, done = output.read_bytes(), ablate()
    assert done.returncode == 2
    assert done.stderr == f"error: {output}: holds something else than ablations; choose another file\n"
    assert (output.read_bytes(), trained.commands) == (before, [])
    assert ablate("--overwrite").returncode == 0
    assert len(rows_of(tmp_path)) == 2


def test_rows_of_other_settings_are_kept_but_not_used(ablate, trained, tmp_path):
    assert ablate().returncode == 0
    before = rows_of(tmp_path)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("pairs: 16", "pairs: 17"))
    done = ablate()
    lost = "has masked, short, no change from another configuration; --overwrite drops them"
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path / 'ablations.json'}: {lost}\n")
    assert rows_of(tmp_path) == before
    assert ablate("--overwrite").returncode == 0
    assert len(trained.commands) == 6
    assert [row["variant"] for row in rows_of(tmp_path)] == ["no change", "masked, short"]


def test_row_is_outdated_if_the_first_stage_of_another_variant_changes(ablate, small, trained, tmp_path):
    start = f"model={tmp_path}/runs/whole-first-stage/model"
    variants = [{"name": "whole", "first_stage": []}, {"name": "starts there", "overrides": [start]}]
    assert ablate(variants=variants).returncode == 0
    values = yaml.safe_load(small.read_text())
    values["first_stage"]["overrides"].append("updates=4")
    small.write_text(yaml.safe_dump(values))
    done = ablate()
    lost = "has starts there, whole from another configuration; --overwrite drops them"
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path / 'ablations.json'}: {lost}\n")


def test_missing_comments_are_an_error_before_any_training(ablate, sets, trained):
    values = yaml.safe_load(sets.read_text())
    sets.write_text(yaml.safe_dump(values | {"unseen_comments": "none.jsonl"}))
    done = ablate()
    assert (done.returncode, trained.commands) == (2, [])
    assert done.stderr.startswith("error: no such file: unseen_comments: none.jsonl (")


@pytest.mark.parametrize("name", ["ablations.yaml", "ablations_without_teachers.yaml"])
def test_the_shipped_variants_load_and_differ(name):
    config = load(AblationsConfig, ROOT / "configs" / name, [])
    loaded = {
        "train.contrastive": ContrastiveConfig,
        "train.pretrain": PretrainConfig,
        "train.distill": DistillConfig,
    }
    made = []
    for variant in config.variants:
        runs = training_commands(config, variant, Path("run"))
        made.append([load(loaded[name], ROOT / file, overrides) for name, file, *overrides in runs])
        if len(runs) == 2:
            assert made[-1][1].model == f"{made[-1][0].out}/model"
    assert all(a != b for a, b in combinations(made, 2))


def test_variants_without_a_first_stage_start_from_the_first_stage_of_the_recipe():
    config = load(AblationsConfig, ROOT / "configs" / "ablations.yaml", [])
    recipe, *others = config.variants
    first, _ = training_commands(config, recipe, Path(config.out) / recipe.folder)
    folder = first[-1].removeprefix("out=")
    for variant in others:
        if variant.first_stage is None:
            ((_, file, *overrides),) = training_commands(config, variant, Path("run"))
            assert load(ContrastiveConfig, ROOT / file, overrides).model == f"{folder}/model"
