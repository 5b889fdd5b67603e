"""The benchmark of scoring runs with few pairs, with the included model and with random weights."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("model", [[], ["--size", "configs/debug.yaml"]], ids=["included", "random"])
def test_few_pairs(tmp_path, model):
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"candidate": f"opens file {i}", "reference": f"closes the file {i}"} for i in range(8)]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "tests.benchmarks.score", "--source", pairs, "--pairs", "8"]
    command += ["--turns", "1", "--json", tmp_path / "out.json", *model]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ways = json.loads((tmp_path / "out.json").read_text())["ways"]
    assert {"sentence-transformers", "exact", "fast"} <= set(ways)
    assert ("fast without head" in ways) == (not model)
    assert ways["exact"]["largest_difference"] < 1e-5
