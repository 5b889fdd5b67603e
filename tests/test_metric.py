import subprocess
import sys

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm import InputError, SimLLM
from simllm.model import config, network, torch_engine

TEXTS = st.lists(st.one_of(st.text(max_size=40), st.sampled_from(["adds two", "gets it", ""])), max_size=8)


@pytest.fixture(scope="module")
def metric(model_folder):
    return SimLLM(model_folder)


def test_poolings_by_hand():
    hidden = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [50.0, 60.0]]])
    mask = torch.tensor([[True, True, False]])
    assert network.cls(hidden, mask).tolist() == [[1.0, -2.0]]
    assert network.mean(hidden, mask).tolist() == [[2.0, -3.0]]
    assert network.maximum(hidden, mask).tolist() == [[3.0, -2.0]]


def test_similarities_by_hand():
    a, b = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [-1.0, 0.0], [3.0, 4.0]])
    assert config.cosine(a, b) == pytest.approx([24 / 25, -1.0, 0.0])
    assert config.inverse_euclidean(a, b) == pytest.approx([1 / (1 + 2**0.5), 1 / 3, 1 / 6])


@pytest.mark.filterwarnings("ignore:.*empty after cleaning")
@settings(max_examples=30)
@given(st.data())
def test_scores_are_symmetric_bounded_and_independent_of_order_and_company(metric, data):
    candidates = data.draw(TEXTS)
    n = len(candidates)
    references = data.draw(st.lists(st.text(max_size=40), min_size=n, max_size=n))
    values = metric.score(candidates, references).values
    assert values.shape == (n,)
    assert ((values >= -1) & (values <= 1)).all()
    assert np.array_equal(values, metric.score(references, candidates).values)
    order = data.draw(st.permutations(range(n)))
    shuffled = metric.score([candidates[i] for i in order], [references[i] for i in order]).values
    assert np.array_equal(shuffled, values[list(order)])
    for i in range(n):
        alone = metric.score([candidates[i]], [references[i]]).values
        assert abs(alone[0] - values[i]) < 1e-5


@pytest.mark.parametrize("name", ["cls", "mean", "max"])
def test_embeddings_do_not_depend_on_the_batch_size(model_folder, comments, name, monkeypatch):
    metric, texts = SimLLM(model_folder, pooling=name), [c for c in comments[:150] if len(c) < 150]
    whole = metric.embed(texts)
    for batch_tokens in (1, 100, 10**6):
        monkeypatch.setattr(torch_engine, "CPU_BATCH", batch_tokens)
        assert np.abs(whole - metric.embed(texts)).max() < 1e-5


def test_equal_texts_and_spelling_variants_score_one(metric):
    texts = ["Adds two numbers.", "adds  two numbers ."]
    assert metric.score(texts, texts[::-1]).values == pytest.approx([1.0, 1.0])
    assert metric.score(["removes it"], ["adds two numbers"]).values[0] < 0.999


def test_empty_texts(metric):
    scores = metric.score(["", "", "adds two", " "], ["adds two", "", "adds two", "\n"])
    assert scores.values == pytest.approx([0.0, 1.0, 1.0, 1.0])
    assert scores.empty == 3
    assert scores.deduplicated == 6


def test_unreadable_texts_get_no_score_of_one(metric):
    with pytest.warns(UserWarning, match="3 of 3 pairs have a text that is empty after cleaning"):
        scores = metric.score(
            ["\u52a0\u6cd5", "\u52a0\u6cd5", "\U0001f389"], ["\u51cf\u6cd5", "\u52a0\u6cd5 ", "adds"]
        )
    assert scores.values == pytest.approx([0.0, 1.0, 0.0])


def test_no_pairs(metric):
    scores = metric.score([], [])
    assert scores.values.shape == (0,)
    assert np.isnan(scores.mean)
    assert metric.embed([]).shape == (0, 32)


def test_warns_once_about_long_texts(metric):
    long = "returns the first value of the list " * 100
    with pytest.warns(UserWarning, match="2 of 4 texts cut at 64 tokens") as caught:
        scores = metric.score([long, "a b"], [long + "x", "a b"])
    assert len(caught) == 1
    assert scores.truncated == 2


def test_rejects_arguments_that_are_not_lists_of_texts(metric):
    with pytest.raises(TypeError, match="candidates: expected a list of texts, got a lone string"):
        metric.score("adds two", ["adds two"])
    for kind, texts in (("DataFrame", pandas.DataFrame({"a": ["adds two"]})), ("set", {"adds two"})):
        with pytest.raises(TypeError, match=f"candidates: expected a list of texts, got {kind}"):
            metric.score(texts, ["adds two"])
    assert metric.score(pandas.Series(["adds two"]), ["adds two"]).values == [1.0]
    with pytest.raises(TypeError, match=r"references\[1\]: expected a text, got NoneType"):
        metric.score(["a", "b"], ["a", None])
    with pytest.raises(InputError, match="2 candidates but 1 references"):
        metric.score(["a", "b"], ["a"])
    with pytest.raises(InputError, match="pooling 'sum': expected one of cls, mean, max"):
        SimLLM(pooling="sum")
    with pytest.raises(InputError, match="similarity 'dot': expected one of cosine, inverse-euclidean"):
        SimLLM(similarity="dot")
    with pytest.raises(InputError, match="no such model folder"):
        SimLLM("no/such/folder")


def test_options_change_scores_and_signature(model_folder):
    pairs = (["adds two numbers"], ["removes the key"])
    seen = set()
    for name in network.POOLINGS:
        for measure in config.SIMILARITIES:
            scores = SimLLM.from_pretrained(model_folder, pooling=name, similarity=measure).score(*pairs)
            assert f"|pooling:{name}|similarity:{measure}|" in scores.signature
            seen.add(round(float(scores.values[0]), 6))
    assert len(seen) == 6


def test_compute_follows_the_evaluate_library(metric):
    result = metric.compute(predictions=["adds two"], references=["adds two"])
    assert result["mean_score"] == pytest.approx(1.0)
    assert result["scores"] == pytest.approx([1.0])
    assert result["signature"] == metric.signature


def test_importing_simllm_does_not_import_torch():
    code = "import sys, simllm; dir(simllm); print({'torch', 'numpy', 'tokenizers'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_scoring_imports_no_compiler():
    code = (
        "import sys; from simllm import SimLLM; SimLLM().score(['a'], ['b']);"
        "print({'sympy', 'torch._dynamo', 'torch._inductor'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("device", ["cuda:99", "abacus", "meta", ""])
def test_a_device_that_cannot_compute_is_one_line(model_folder, device):
    with pytest.raises(
        InputError, match=rf"device '{device}': cannot be used \(.*\); expected cpu"
    ) as caught:
        SimLLM(model_folder, device=device)
    assert "\n" not in str(caught.value)
    assert SimLLM(model_folder, device="cpu").score(["a"], ["a"]).mean == pytest.approx(1)
