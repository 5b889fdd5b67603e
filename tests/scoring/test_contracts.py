"""Contracts for every input: no exception, bounded scores, and scores that do not depend on other pairs."""

import json
import pickle
import random
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from simllm import InputError, SimLLM
from simllm.analysis import golden_scores
from simllm.cli.selftest import TOLERANCE
from simllm.model import code_model
from simllm.model.saved_model import default_model
from simllm.text_cleaning import LONGEST
from tests.command import run

pytestmark = pytest.mark.filterwarnings("ignore:.*(empty after cleaning|texts cut at|read in windows)")
ODD = [
    "",
    " ",
    "\0",
    "\ud800",
    "\U0001f389",
    "a" * 500,
    "<mask>",
    "</s>",
    "\u202e",
    "/** x */",
    "\u0301",
    "\n\n",
]
TEXT = st.one_of(st.text(max_size=60), st.sampled_from(ODD))


@pytest.fixture(scope="module", params=["exact", "fast", "window", "f1"])
def metric(request, model_folder):
    options = {"window": {"on_long": "window"}, "f1": {"similarity": "f1"}}
    return SimLLM(model_folder, **options.get(request.param, {"mode": request.param}))


@pytest.mark.parametrize("count", [300, pytest.param(2500, marks=pytest.mark.slow)])
def test_scores_of_unusual_texts_are_bounded(metric, count):
    draw = random.Random(0)
    pieces = [
        *ODD,
        "adds two lists",
        "gets",
        "1.5",
        "\u52a0\u6cd5",
        "\r\n",
        "\t",
        "'s",
        '"""',
        "#",
        "@param x",
    ]

    def text():
        if draw.random() < 0.5:
            return "".join(draw.choices(pieces, k=draw.randrange(6)))
        return "".join(
            chr(draw.choice((draw.randrange(128), draw.randrange(0x110000))))
            for _ in range(draw.randrange(30))
        )

    candidates, references = [text() for _ in range(count)], [text() for _ in range(count)]
    values = metric.score(candidates, references).values
    assert ((values >= -1) & (values <= 1)).all()


LEAST = {"cosine": -1, "inverse-euclidean": 0, "precision": -1, "recall": -1, "f1": 0}
SPECIAL = [
    "400\u00bc",
    "\u2153 \u00b5\u212b \ufb01",
    "a\u0338=b",
    "x\u200dy",
    "\u1e9b\u0323",
    "1\u20443 1/3",
    "a a a a",
]


def check_bounds(metric, texts):
    """Check that identical texts score exactly 1 and that all scores are within their bounds."""
    assert (metric.score(texts, texts).values == 1).all()
    values = metric.score(texts, texts[::-1]).values
    assert ((values >= LEAST[metric.similarity]) & (values <= 1)).all()


# Both modes share what compares vectors; below, a small model scores in fast mode by every similarity.
@pytest.mark.parametrize(
    ("similarity", "mode"), [*((name, "exact") for name in LEAST), ("cosine", "fast"), ("f1", "fast")]
)
def test_identical_texts_score_exactly_one(comments, similarity, mode):
    metric = SimLLM(similarity=similarity, mode=mode)
    check_bounds(metric, [*SPECIAL, *ODD, *comments[:8]])


@pytest.fixture(scope="module", params=LEAST)
def measures(request, model_folder):
    """Return two metrics that differ only in the mode, exact or fast; both split long texts into windows."""
    return [
        SimLLM(model_folder, similarity=request.param, mode=m, on_long="window") for m in ("exact", "fast")
    ]


TEXTS = st.lists(st.one_of(TEXT, st.sampled_from(SPECIAL), st.text("ab\u00bc 1", max_size=300)), max_size=5)


@settings(max_examples=15)
@given(TEXTS)
def test_scores_of_any_texts_are_bounded(measures, texts):
    for metric in measures:
        check_bounds(metric, texts)


@pytest.mark.slow
@settings(max_examples=50)  # for each similarity
@given(TEXTS)
def test_scores_of_many_texts_are_bounded(measures, texts):
    for metric in measures:
        check_bounds(metric, texts)


@settings(max_examples=12)
@given(st.data())
def test_scores_are_symmetric_bounded_and_independent_of_other_pairs(metric, data):
    pairs = data.draw(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6))
    candidates, references = map(list, zip(*pairs, strict=True))
    tolerance = 0.02 if metric.mode == "fast" else 1e-5
    frequencies = metric.count_frequencies(["adds two lists", "gets it"]) if metric.by_token else None
    same = pickle.loads(pickle.dumps(metric))
    same.frequencies = frequencies  # token weights must not depend on other pairs
    values = same.score(candidates, references).values
    assert ((values >= -1) & (values <= 1)).all()
    assert same.score(references, candidates).values == pytest.approx(values, abs=tolerance)
    twice = same.score(candidates * 2, references * 2).values
    assert twice == pytest.approx(np.tile(values, 2), abs=tolerance)
    alone = [same.score([c], [r]).values[0] for c, r in pairs]
    assert alone == pytest.approx(values, abs=tolerance)


def test_a_line_of_a_million_characters(model_folder):
    line = "returns the first value " * 42_000
    for on_long in ("truncate", "window"):
        scores = SimLLM(model_folder, on_long=on_long).score([line], [line])
        assert scores.values == pytest.approx([1.0])
        assert scores.truncated == 2
    with pytest.raises(InputError, match=r"candidate 1: \d+ tokens, more than the model's 64"):
        SimLLM(model_folder, on_long="error").score([line], ["a"])


def test_text_shortened_before_cleaning_counts_as_truncated(model_folder):
    blank, short = " " * LONGEST + "adds two", "adds two" + " " * LONGEST
    for on_long in ("truncate", "window"):
        scores = SimLLM(model_folder, on_long=on_long).score([short, blank], ["adds two", "sets it"])
        assert scores.truncated == 2
        assert scores.values == pytest.approx([1.0, 0.0])
    with pytest.raises(InputError, match="candidate 1: 10008 characters, more than 10000"):
        SimLLM(model_folder, on_long="error").score([blank], ["a"])


def test_scores_do_not_depend_on_threads(model_folder, comments):
    metric = SimLLM(model_folder)
    expected = metric.score(comments[:100], comments[100:200]).values
    threads = torch.get_num_threads()
    for count in (1, 4):
        torch.set_num_threads(count)
        assert np.abs(metric.score(comments[:100], comments[100:200]).values - expected).max() < 1e-5
    torch.set_num_threads(threads)
    with ThreadPoolExecutor(4) as pool:
        parts = list(
            pool.map(
                lambda i: metric.score(comments[i : i + 10], comments[100 + i : 110 + i]).values,
                range(0, 100, 10),
            )
        )
    assert np.abs(np.concatenate(parts) - expected).max() < 1e-5


def test_the_default_model_gives_its_golden_scores():
    for mode in ("plain", "exact"):
        assert (
            golden_scores.largest_difference(SimLLM(mode=mode), default_model())
            < TOLERANCE["exact", "summaries"]
        )


@pytest.mark.parametrize("engine", ["torch", pytest.param("onnxruntime", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*(texts|pairs)")
def test_the_included_code_reader_gives_its_golden_scores(engine):
    reader = SimLLM(engine=engine).code_reader
    assert golden_scores.largest_difference(reader, code_model.packaged()) < TOLERANCE["exact", "code"]


@pytest.mark.slow
def test_selftest_and_info():
    done = run("selftest", "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(row["mode"], row["scored"]): row["scores"] for row in found["rows"]} == dict.fromkeys(
        TOLERANCE, "right"
    )
    assert found["pairs with code"] == len(golden_scores.CODE_PAIRS)
    facts = json.loads(run("info", "-f", "json").stdout)
    assert facts["signature"] == SimLLM().signature
    assert facts["folder"] == str(default_model())
    reader = SimLLM().code_reader
    assert facts["code reader hash"] == reader.signature
    assert facts["code reader"] == str(code_model.packaged())
    stored = sum(weight.size for weight in load_file(code_model.packaged() / "model.safetensors").values())
    assert facts["code reader parameters"] == stored


def test_selftest_detects_changed_scores(model_folder, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in model_folder.glob("*.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    assert "no golden.json" in run("selftest", "--model", folder).stderr
    golden_scores.write_golden_scores(folder)
    found = json.loads((folder / "golden.json").read_text())
    found["scores"][2] += 0.001
    (folder / "golden.json").write_text(json.dumps(found))
    done = run("selftest", "--model", folder, "-f", "json")
    assert done.returncode == 2
    assert {row["scored"] for row in json.loads(done.stdout)["rows"]} == {"summaries"}
    assert "scores of mode exact differ" in done.stderr


OFFLINE = """
import socket
def refuse(*_, **__): raise AssertionError("a socket was opened")
socket.socket.connect = socket.socket.__init__ = socket.getaddrinfo = refuse
from simllm.cli.main import main
raise SystemExit(main(["score", "adds two lists", "combines 2 arrays", "--quiet"]))
"""


def test_scoring_opens_no_socket(model_folder, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    for owner, name in ((socket.socket, "connect"), (socket.socket, "__init__"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, refuse)
    assert run("score", "adds two lists", "combines 2 arrays", "--model", model_folder).returncode == 0


@pytest.mark.slow
def test_process_makes_no_network_calls():
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "adds two lists" in done.stdout
