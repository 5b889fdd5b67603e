"""The benchmark of GPUs runs in its reduced form on a CPU, without packages that GPU machines may lack."""

import json
import os
import subprocess
import sys

import pytest

from tests.benchmarks.gpu import compare_with_targets
from tests.conftest import ROOT

ABSENT = [
    "datasets",
    "rensa",
    "sentence_transformers",
    "nltk",
    "scipy",
    "matplotlib",
    "tree_sitter",
    "pandas",
]


@pytest.mark.slow
def test_reduced_form(tmp_path):
    code = (
        "import runpy, sys\n"
        f"sys.modules |= dict.fromkeys({ABSENT})\n"
        f"sys.argv = ['tests/benchmarks/gpu.py', '--cpu', '--seconds=0.1', '--json={tmp_path}/gpu.json']\n"
        "runpy.run_module('tests.benchmarks.gpu', run_name='__main__', alter_sys=True)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["failed"] == []
    assert found["reduced"]
    assert "targets" not in found  # they are for GPUs
    assert found["training"]["bit_identical_after_resuming"]
    assert {"date", "command", "cpu", "gpu", "versions"} <= found.keys()
    for name in ("base", "mini"):
        assert found[name]["simllm"]["tokens_per_second"] > 0


def test_targets_are_reached_or_not():
    results = {
        "base": {"simllm": {"mfu": 0.5}, "ratio": 4.9},
        "scoring": {"bf16": {"pairs_per_second": 40_000}},
    }
    reached = {name: row["reached"] for name, row in compare_with_targets(results).items()}
    assert reached == {"mfu": True, "ratio": False, "pairs_per_second": True}
    assert compare_with_targets({"base": {"error": "lost"}}) == {}
