"""The benchmark of GPUs runs in its reduced form on a CPU, without packages that GPU machines may lack."""

import json

import pytest

from tests.bare_image import ABSENT, run_without
from tests.benchmarks.gpu import compare_with_targets


@pytest.mark.slow
def test_reduced_form(tmp_path):
    file = tmp_path / "gpu.json"
    parts = ["attention", "scores", "updates", "base", "scoring", "training", "encoder"]
    command = ["tests.benchmarks.gpu", "--cpu", "--seconds", "0.1", "--json", file, "--parts", *parts]
    done = run_without(ABSENT, command)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert not found["failed"]
    assert found.keys() >= {*parts, "date", "command", "cpu", "gpu", "versions"}
    assert found["reduced"]
    assert "targets" not in found  # they are for GPUs
    assert found["updates"]["contrastive"]["gradient"] < 1e-6  # on the same device
    assert 0 < found["attention"]["bf16"]["gradient"] < 0.05
    assert found["training"]["bit_identical_after_resuming"]
    assert found["base"]["plain"]["padding"] > 0.2 > found["base"]["simllm"]["padding"]


@pytest.mark.slow
def test_a_run_that_is_cut_off_keeps_its_results(tmp_path):
    file = tmp_path / "gpu.json"
    command = ["tests.benchmarks.gpu", "--cpu", "--json", file, "--parts", "scores", "base"]
    done = run_without(ABSENT, [*command, "--limit", "0.001"])
    assert done.returncode == 1, done.stderr
    found = json.loads(file.read_text())
    assert found["scores"]["error"] == "ended after its limit of 0 s"
    assert found["base"]["error"] == "left out, because the time was up"
    assert found["failed"] == ["scores", "base"]


def test_targets_are_reached_or_not():
    results = {
        "base": {"simllm": {"mfu": 0.5}, "ratio": 4.9},
        "scoring": {"bf16": {"pairs_per_second": 40_000}, "check_seconds": 50_000},
    }
    reached = {name: row["reached"] for name, row in compare_with_targets(results).items()}
    assert reached == {"mfu": True, "ratio": False, "pairs_per_second": True}
    assert compare_with_targets({"base": {"error": "lost"}}) == {}
