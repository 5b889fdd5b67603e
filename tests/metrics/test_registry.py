"""The registry of metrics, including metrics of other packages."""

import os
import subprocess
import sys

import numpy as np
import pytest

from simllm import InputError, SimLLM, metrics
from simllm.metrics import registry
from simllm.metrics.interface import pair_scores

PACKAGE = '''
from simllm.metrics import FunctionMetric

def length(argument):
    """Ratio of the shorter to the longer text, times the argument."""
    factor = float(argument or 1)
    ratios = lambda c, r: [factor * min(len(a), len(b)) / max(len(a), len(b)) for a, b in zip(c, r)]
    return FunctionMetric("length", f"length|factor:{factor}", ratios)
'''


def test_a_package_adds_a_metric(tmp_path):
    (tmp_path / "lengths.py").write_text(PACKAGE)
    installed = tmp_path / "lengths-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[simllm.metrics]\nlength = lengths:length\njaccard = lengths:length\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code = (  # the built-in `jaccard` wins over the installed one
        "from simllm import metrics\n"
        "from simllm.cli.main import main\n"
        "print(metrics.names()[-1], metrics.load('length').score([metrics.Example('ab', 'abcd')]).values)\n"
        "print(metrics.load('jaccard').score([metrics.Example('ab', 'abcd')]).values)\n"
        "main(['score', 'ab', 'abcd', '--metrics', 'length=2', '-f', 'tsv'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[:4] == [
        "length [0.5]",
        "[0.]",
        "length=2\tcandidate\treference",
        "1\tab\tabcd",
    ]


def test_simllm_follows_the_protocol(model_folder):
    metric: metrics.Metric = SimLLM(model_folder)
    examples = [metrics.Example("adds two lists", "combines two lists"), metrics.Example("a b", "a b")]
    scores = metric.score(examples)
    expected = metric.score(["adds two lists", "a b"], ["combines two lists", "a b"])
    assert np.array_equal(scores.values, expected.values)
    assert scores.signature == metric.signature
    assert metric.name == "simllm"
    registered = registry.load("simllm", model_folder)
    assert pair_scores(registered, ["a b"], ["a b"]) == pytest.approx([1.0])
    assert registered.signature == metric.signature


@pytest.mark.parametrize("examples", [["a"], "ab", [("a", "b")]])
def test_texts_instead_of_examples_are_a_type_error(examples, model_folder):
    for metric in (metrics.load("jaccard"), SimLLM(model_folder)):
        with pytest.raises(TypeError, match=r"examples\[0\]: expected an Example"):
            metric.score(examples)


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="metric 'nix': expected one of simllm, simllm-same, bleu"):
        metrics.load("nix")
    with pytest.raises(InputError, match="metric 'blue'"):
        registry.load_all(["jaccard", "blue"])
    found, missing = registry.load_all(["jaccard", "bertscore", "jaccard"])
    assert [metric.name for metric in found] == ["jaccard"]
    assert missing == {"bertscore": "name it as bertscore=MODEL"}
