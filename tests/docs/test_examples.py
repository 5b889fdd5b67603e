"""The worked examples run, and a package can add a metric as documented."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

from tests.conftest import ROOT, SHARED
from tests.docs.markdown_blocks import DATA, blocks

EXAMPLES = ROOT / "docs" / "examples"


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, env=os.environ | environment,
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_train_on_your_code(tmp_path):
    done = run(EXAMPLES / "train_on_your_code.py", "--quick", "--out", tmp_path / "own")
    assert done.returncode == 0, done.stderr
    assert "open the file" in done.stdout
    assert (tmp_path / "own" / "tuned" / "model" / "model.safetensors").is_file()


@pytest.mark.slow
def test_repeat_the_study_on_made_up_ratings(tmp_path):
    done = run(EXAMPLES / "repeat_the_study.py", "--data", tmp_path, "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    assert "made-up ratings" in done.stderr
    assert (tmp_path / "report" / "report.html").is_file()


@pytest.mark.slow
def test_repeat_the_study_on_rated_sets(tmp_path):
    if not (SHARED / "data" / "rated").is_dir():
        pytest.skip(f"no rated sets in {SHARED / 'data' / 'rated'}")
    arguments = ("--data", SHARED / "data" / "rated", "--out", tmp_path / "report")
    done = run(EXAMPLES / "repeat_the_study.py", *arguments, "--metrics", "simllm,jaccard")
    assert done.returncode == 0, done.stderr
    assert re.search(r"haque2022 +simllm +1 +0\.8", done.stdout)


@pytest.mark.slow
def test_a_package_adds_a_metric(tmp_path):
    page = ROOT / "docs" / "adding-a-metric.md"
    project = tomllib.loads(re.search(r"```toml\n(.*?)```", page.read_text(), re.S)[1])
    code = next(block.code for block in blocks(page) if "FunctionMetric" in block.code)
    (tmp_path / "my_metrics.py").write_text(code.partition("\nprint")[0])
    described = tmp_path / "my_metrics-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: my-metrics\nVersion: 1.0\n")
    points = project["project"]["entry-points"]["simllm.metrics"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (described / "entry_points.txt").write_text("\n".join(["[simllm.metrics]", *lines, ""]))
    done = run(
        "-m", "simllm", "evaluate", "correlation", "--ratings", DATA / "ratings.jsonl",
        "--metrics", "jaccard,length-ratio", "-f", "json", PYTHONPATH=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["metric"] for row in rows] == ["jaccard", "length-ratio"]
