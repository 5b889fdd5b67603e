"""The documented programs for Spark and `datasets` give the same scores as a single process.

Each worker process of such a program loads the model once.
"""

import gzip
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simllm import SimLLM
from tests.conftest import ROOT
from tests.docs.markdown_blocks import blocks

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "engines.md"
# Each Python process imports this module, which notes when a model folder is read.
NOTE_LOADS = """
import os, sys
def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith("simllm.json"):
        with open({file!r}, "a") as loads:
            loads.write(f"{{os.getpid()}}\\n")
sys.addaudithook(note)
"""


@pytest.fixture
def shards(tmp_path):
    """Write three files of pairs: one with more pairs than are scored in one chunk, and two small ones."""
    numbers, shards = itertools.count(), []
    (tmp_path / "shards").mkdir()
    for name, count in (("a", 1100), ("b", 30), ("c", 40)):
        rows = [
            {"id": f"m{n}", "candidate": f"adds row {n}", "reference": f"joins {n % 7} tables " * (n % 5)}
            for n in itertools.islice(numbers, count)
        ]
        with gzip.open(tmp_path / "shards" / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        shards.append(rows)
    return shards


def scores_of_one_process(rows):
    pairs = [(row["candidate"], row["reference"], row["id"]) for row in rows]
    return {
        pair[2]: score
        for chunk, scores in SimLLM().stream(pairs)
        for pair, score in zip(chunk, scores.values, strict=True)
    }


def run(program, folder, **environment):
    """Run the documented command with `program`; return how often each process loaded the model."""
    (folder / "docs").symlink_to(ROOT / "docs")
    loads = folder / "loads"
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(NOTE_LOADS.format(file=str(loads)))
    command = next(block.code for block in blocks(PAGE) if program in block.code)
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder / 'hook'}:{ROOT}",
        } | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = loads.read_text().split()
    return [found.count(process) for process in set(found)]


def read_scores(path):
    from pyarrow import parquet

    rows = parquet.read_table(path).to_pylist()
    return {row["id"]: row["score"] for row in rows}


def test_spark(shards, tmp_path):
    pyspark = pytest.importorskip("pyspark")
    home = tmp_path / "spark"  # a local cluster writes logs into its home
    (home / "conf").mkdir(parents=True)
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    fast = "extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"
    (home / "conf" / "spark-defaults.conf").write_text(
        f"spark.ui.enabled false\nspark.driver.{fast}spark.executor.{fast}"
    )
    loads = run("score_with_spark.py", tmp_path, SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    expected = {}
    for rows in shards:
        expected |= scores_of_one_process(rows)
    assert read_scores(tmp_path / "scores") == expected
    assert set(loads) == {1}
    assert 2 <= len(loads) <= 3  # the program itself, and one worker process in each executor


def test_datasets(shards, tmp_path):
    loads = run("score_with_datasets.py", tmp_path, HF_HOME=str(tmp_path / "cache"))
    assert read_scores(tmp_path / "scores.parquet") == scores_of_one_process(itertools.chain(*shards))
    assert loads == [1, 1]
