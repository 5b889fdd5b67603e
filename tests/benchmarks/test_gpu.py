"""The benchmark of GPUs runs in its reduced form on a CPU, without packages that GPU machines may lack."""

import json
import math
import signal

import pytest
import torch

from tests.bare_image import ABSENT, run_without
from tests.benchmarks import gpu
from tests.benchmarks.gpu import assert_below, assert_close, compare_with_targets, differences


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


@pytest.mark.parametrize("lost", ["loss", "first", "second"])
def test_a_difference_that_is_no_number_fails(lost):
    expected = {"first": torch.ones(2), "second": torch.ones(2), "loss": torch.tensor(1.0)}
    rows = {"bf16": differences(expected, expected)}
    assert_close(rows, gpu.TOLERANCE.get)
    found = expected | {lost: expected[lost] * math.nan}
    with pytest.raises(AssertionError, match="bf16"):
        assert_close({"bf16": differences(expected, found)}, gpu.TOLERANCE.get)


@pytest.mark.parametrize("name", ["golden", "cpu"])
def test_a_score_that_is_no_number_fails(name):
    scores, limits = {"golden": 1e-6, "cpu": 1e-6}, {"golden": 1e-4, "cpu": 1e-4}
    assert_below(scores, limits)
    with pytest.raises(AssertionError, match=f"^{name}: expected less than"):
        assert_below(scores | {name: math.nan}, limits)


def test_a_limit_of_zero_leaves_everything_out(tmp_path, monkeypatch):
    file, handler = tmp_path / "gpu.json", signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(
        "sys.argv", ["gpu", "--cpu", "--limit", "0", "--parts", "scores", "--json", str(file)]
    )
    try:
        with pytest.raises(SystemExit, match="1"):
            gpu.main()
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert json.loads(file.read_text())["scores"] == {"error": "left out, because the time was up"}


def test_targets_are_reached_or_not():
    results = {
        "base": {"simllm": {"mfu": 0.5}, "ratio": 4.9},
        "scoring": {"bf16": {"pairs_per_second": 40_000}, "check_seconds": 50_000},
    }
    reached = {name: row["reached"] for name, row in compare_with_targets(results).items()}
    assert reached == {"mfu": True, "ratio": False, "pairs_per_second": True}
    assert compare_with_targets({"base": {"error": "lost"}}) == {}
