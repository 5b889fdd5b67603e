"""Figures, card and release of a model, by the commands that make the default one."""

import json
import shutil
import subprocess
import sys

import yaml

from simllm import SimLLM
from tests.conftest import ROOT


def command(name, *arguments):
    return subprocess.run(
        [sys.executable, "-m", f"train.{name}", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_model_is_measured(model_folder, sets):
    done = command("measure", model_folder, "--config", sets)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["signature"] == SimLLM(model_folder).signature
    agreement = figures["spearman"]["set/rated"]
    assert agreement["pairs"] == 60
    assert all(
        agreement[name]["low"] <= agreement[name]["rho"] <= agreement[name]["high"]
        for name in ("simllm", "jaccard")
    )
    assert (
        figures["contrast"]["jaccard"]["adversarial"]["all"]
        < 0.05
        < figures["contrast"]["simllm"]["balanced"]["all"]
    )
    assert set(figures["languages"]) == {"python", "go"}
    for found in figures["languages"].values():
        assert found["pairs"] == 20
        assert found["first"] <= found["mrr"] <= 1
    unrelated = figures["random_pairs"]
    assert -1 <= unrelated["p5"] <= unrelated["median"] <= unrelated["p95"] <= 1


def test_a_set_that_is_not_there_is_named(model_folder, sets, tmp_path):
    config = yaml.safe_load(sets.read_text()) | {"rated": [str(tmp_path / "none.jsonl")]}
    sets.write_text(yaml.safe_dump(config))
    done = command("measure", model_folder, "--config", sets)
    assert done.returncode == 2
    assert "none.jsonl: cannot be read" in done.stderr.splitlines()[-1]


def test_a_release_is_half_as_large_and_has_its_card(model_folder, sets, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(model_folder, run / "model")
    info = json.loads((run / "model" / "simllm.json").read_text())
    info["provenance"] = {"objective": "none", "updates": 0, "config": {"seed": 1}}
    (run / "model" / "simllm.json").write_text(json.dumps(info))
    (run / "log.jsonl").write_text("{}\n")
    (tmp_path / "notes.md").write_text("## Notes\n\nOf mine.\n")
    out = tmp_path / "released"
    (tmp_path / "comments.txt").write_text("".join(f"adds {i} lists\n" for i in range(60)))
    done = command(
        "release",
        "--centre",
        tmp_path / "comments.txt",
        run,
        "--out",
        out,
        "--notes",
        tmp_path / "notes.md",
        "--config",
        sets,
        "--seeds",
        run,
        "--average",
        "--held-out",
        run,
    )
    assert done.returncode == 0, done.stderr
    card = (out / "README.md").read_text()
    assert card.endswith("## Notes\n\nOf mine.\n")
    figures = json.loads((out / "figures.json").read_text())
    rho = figures["spearman"]["set/rated"]["simllm"]["rho"]
    assert f"| set/rated | 60 | {rho:.4f} [" in card
    assert "|  | seed 1 | seed 2 | standard deviation | mean of the weights (released) |" in card
    assert f"| set/rated | {rho:.3f} | {rho:.3f} | 0.000 | {rho:.3f} |" in card  # both seeds are one run
    assert "| kind | simllm, balanced | twin, balanced | jaccard, balanced |" in card
    assert figures["held_out"]["contrast"].keys() == {"simllm", "jaccard"}
    before, after = ((folder / "model.safetensors").stat().st_size for folder in (run / "model", out))
    assert after < 0.6 * before
    centred = SimLLM(out).embed([f"adds {i} lists" for i in range(0, 60, 20)])
    assert abs(centred.mean(axis=0)).max() < 0.01 < abs(centred).max()
    assert (out / "log-1-run.jsonl").is_file()
