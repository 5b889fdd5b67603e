"""Short runs that show what each ingredient gives."""

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from simllm.model import checkpoint
from simllm.text import clean
from tests.conftest import ROOT
from train.release import card
from train.release.ablations import AblationsConfig, commands
from train.runtime.config import ContrastiveConfig, PretrainConfig, load


@pytest.fixture
def small(model_folder, sets, corpus_file, comments, tmp_path):
    """A recipe of a few updates, and its variants: as it is, and with a first stage of its own."""
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
    ablations = {
        "recipe": str(tmp_path / "recipe.yaml"), "measure": str(sets), "out": str(tmp_path / "runs"),
        "overrides": ["seed=3"],
        "first_stage": {"recipe": "configs/debug.yaml", "overrides": first},
        "variants": [
            {"name": "no change"}, {"name": "masked, short", "pretraining": ["objective=masked"]},
        ],
    }  # fmt: skip
    file = tmp_path / "ablations.yaml"
    file.write_text(yaml.safe_dump(ablations))
    return file


def ablate(config, out):
    return subprocess.run(
        [sys.executable, "-m", "train.release.ablations", config, "-o", out],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_every_variant_is_trained_and_measured_once(small, tmp_path):
    done = ablate(small, tmp_path / "ablations.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "ablations.json").read_text())
    assert [row["variant"] for row in rows] == ["no change", "masked, short"]
    assert [[command[0] for command in row["commands"]] for row in rows] == [
        ["train.contrastive"], ["train.pretrain", "train.contrastive"],
    ]  # fmt: skip
    assert rows[0]["spearman"] != rows[1]["spearman"]
    made = checkpoint.load(tmp_path / "runs" / "masked-short" / "model").info.provenance
    assert made["config"]["seed"] == 3
    assert made["start"]["objective"] == "masked language modelling"
    title, _, table = card.ablations(rows)
    assert title == "## What each ingredient gives"
    assert f"| masked, short | {rows[1]['spearman']['set/rated']['simllm']['rho']:.3f} |" in table

    rows[0]["spearman"]["set/rated"]["simllm"]["rho"] = 0.5  # kept as it is: not measured again
    (tmp_path / "ablations.json").write_text(json.dumps(rows[:1]))
    finished = (tmp_path / "runs" / "masked-short" / "log.jsonl").read_text()
    again = ablate(small, tmp_path / "ablations.json")
    assert again.returncode == 0
    assert (tmp_path / "runs" / "masked-short" / "log.jsonl").read_text() == finished  # nor trained
    assert json.loads((tmp_path / "ablations.json").read_text()) == rows


def test_a_variant_that_fails_is_named(small, tmp_path):
    config = yaml.safe_load(small.read_text())
    config["variants"] = [{"name": "a typo", "overrides": ["updats=1"]}]
    small.write_text(yaml.safe_dump(config))
    done = ablate(small, tmp_path / "ablations.json")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: a typo: training ended with exit status 2"
    assert not (tmp_path / "ablations.json").exists()


def test_what_was_measured_is_kept_when_an_earlier_variant_fails(small, tmp_path):
    config = yaml.safe_load(small.read_text())
    failing = {"name": "a typo", "overrides": ["updats=1"]}
    config["variants"] = [{"name": "no change"}, failing, {"name": "known"}]
    small.write_text(yaml.safe_dump(config))
    run = ["train.contrastive", config["recipe"], "seed=3", f"out={tmp_path / 'runs' / 'known'}"]
    output = tmp_path / "ablations.json"
    output.write_text(json.dumps([{"variant": "known", "commands": [run]}]))
    assert ablate(small, output).returncode == 2
    assert [row["variant"] for row in json.loads(output.read_text())] == ["no change", "known"]


def test_what_is_no_result_is_not_written_over(small, tmp_path):
    output = tmp_path / "ablations.json"
    output.write_text('{"mine": 1}')
    done = ablate(small, output)
    assert done.returncode == 2
    assert done.stderr == f"error: {output}: holds something else than ablations; choose another file\n"
    assert output.read_text() == '{"mine": 1}'


def test_the_shipped_variants_load_and_differ():
    ablations = load(AblationsConfig, ROOT / "configs" / "ablations.yaml", [])
    loaded = {"train.contrastive": ContrastiveConfig, "train.pretrain": PretrainConfig}
    made = []
    for variant in ablations.variants:
        runs = commands(ablations, variant, Path("run"))
        made.append([load(loaded[name], ROOT / file, overrides) for name, file, *overrides in runs])
        assert made[-1][-1].out == "run"
        if len(runs) == 2:
            assert made[-1][1].model == f"{made[-1][0].out}/model"
    assert all(a != b for a, b in combinations(made, 2))
