"""simllm as a library does not change the global state of its process."""

import json
import locale
import os
import random
import signal
import subprocess
import sys
import warnings
from functools import partial
from itertools import pairwise

import nltk
import numpy as np
import pytest
import torch

from simllm import SimLLM
from simllm.analysis.comparison import compare
from simllm.analysis.explanation import explain
from simllm.evaluation import contrast, correlation, model_variants, robustness
from simllm.evaluation.metric_study.study import run_study
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.metrics import registry
from simllm.metrics.interface import Example, UnavailableError, pair_scores
from simllm.perturb.summaries import lexicon


def state():
    """Return the global state that libraries may change by accident."""
    return {
        "random": random.getstate(),
        "numpy": [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],
        "torch": torch.get_rng_state().tolist(),
        "threads": torch.get_num_threads(),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "numpy errors": np.geterr(),
        "filters": list(warnings.filters),
        "environment": {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"},
        "nltk": list(nltk.data.path),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        "locale": locale.setlocale(locale.LC_ALL),
        "folder": os.getcwd(),  # noqa: PTH109
        "streams": (sys.stdin, sys.stdout, sys.stderr),
    }


@pytest.fixture
def unchanged(tmp_path, monkeypatch):
    """Check at the end of a test that the global state has not changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = state()
    yield
    after = state()
    for name, value in before.items():
        assert after[name] == value, name


PAIRS = (["adds two lists", "opens the file", ""] * 4, ["combines 2 arrays", "closes the file", "é"] * 4)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.filterwarnings("ignore:.*pairs have a text")
@pytest.mark.parametrize("mode", ["exact", "fast", "plain"])
def test_loading_and_scoring(model_folder, mode):
    metric = SimLLM(model_folder, mode=mode)
    metric.score(*PAIRS)
    list(metric.stream(zip(*PAIRS, strict=True)))
    metric.embed(PAIRS[0])
    SimLLM(model_folder, mode=mode, similarity="f1").score(*PAIRS)


@pytest.mark.usefixtures("unchanged")
def test_explaining_and_comparing(model_folder):
    metric = SimLLM(model_folder)
    explain(metric, "adds two lists", "combines 2 arrays")
    texts = [f"adds {i} lists" for i in range(10)]
    compare(metric, {"a": texts, "b": texts[::-1]}, [texts])


ARGUMENTS = {"word-vectors": "=CORPUS", "sentence-bert": "=MODEL", "bertscore": "=MODEL", "nli": "=NLI"}
NAMES = [
    pytest.param(name + ARGUMENTS.get(name, ""), marks=pytest.mark.slow if name == "meteor" else ())
    for name in registry.BUILT_IN  # reading WordNet for METEOR takes seconds
]


@pytest.fixture
def imported():
    """Import the libraries that change warning filters when they are imported."""
    import bert_score
    import sentence_transformers

    return bert_score, sentence_transformers


@pytest.mark.usefixtures("imported", "unchanged")
@pytest.mark.parametrize("name", NAMES)
def test_every_metric(model_folder, nli_folder, tmp_path, name):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("adds two lists\nadds two arrays\nopens the file\ncloses the file\n" * 4)
    name = (
        name.replace("MODEL", str(model_folder))
        .replace("CORPUS", str(corpus))
        .replace("NLI", str(nli_folder))
    )
    try:
        metric = registry.load(name, model_folder)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert np.isfinite(metric.score(list(map(Example, *PAIRS))).values).all()


@pytest.mark.usefixtures("unchanged")
def test_evaluating(model_folder, tmp_path, comments):
    rated = tmp_path / "rated.jsonl"
    rows = [
        {"reference": a, "candidate": b, "rating": i % 5} for i, (a, b) in enumerate(pairwise(comments[:31]))
    ]
    rated.write_text("".join(json.dumps(row) + "\n" for row in rows))
    correlation.correlate(rated, ["simllm", "jaccard"], model_folder)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "update-10").symlink_to(model_folder)
    run_study([rated], ["simllm", "jaccard"], model_folder, tmp_path / "checkpoints")
    metric = registry.load("jaccard")
    contrast.rewording_wins(partial(pair_scores, metric), contrast.load())
    model_variants.load_variants(model_folder)
    score = partial(pair_scores, metric)
    robustness.measure_robustness(
        score, robustness.make_edits(comments[:20], lexicon.load(), seed=1), examples=2
    )


@pytest.mark.usefixtures("unchanged")
def test_writing_files(tmp_path):
    output_file.write(tmp_path / "file", "text")
    with OutputFolder(tmp_path / "folder", "results").replacing() as partial:
        output_file.write(partial / "file", "text")


@pytest.mark.slow
def test_importing():
    modules = "metric cli analysis.comparison analysis.explanation evaluation.metric_study.study"
    program = f"""
import os, random, signal, sys, warnings
import matplotlib, nltk, numpy, scipy.stats, torch

def state():
    return {{
        "random": (random.getstate(), repr(numpy.random.get_state()), torch.get_rng_state().tolist()),
        "environment": dict(os.environ), "filters": list(warnings.filters), "nltk": list(nltk.data.path),
        "signal": signal.getsignal(2), "matplotlib": dict(matplotlib.rcParams), "output": sys.stdout,
    }}

before = state()
import {", ".join(f"simllm.{name}" for name in modules.split())}
assert [name for name, value in state().items() if value != before[name]] == []
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
