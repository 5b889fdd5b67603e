"""Variants of the metric simllm share one model and one encoder run, and score as each does alone."""

from unittest import mock

import numpy as np
import pytest

from simllm import SimLLM
from simllm.evaluation import model_variants
from simllm.metrics.interface import pair_scores
from simllm.model import saved_model
from simllm.model.torch_engine import TorchEngine


@pytest.fixture
def texts(comments, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    candidates, references = list(comments[:60]), list(comments[30:90])
    candidates[3] = references[4] = candidates[5] = references[5] = "é"  # empty after cleaning
    return candidates, references


@pytest.mark.filterwarnings("ignore:.*pairs have a text")
def test_every_variant_has_the_scores_and_the_signature_of_its_own_metric(model_folder, texts):
    found = model_variants.load_variants(model_folder)
    options = [(p, s) for p in ("cls", "mean", "max") for s in ("cosine", "inverse-euclidean")]
    options += [(None, s) for s in ("precision", "recall", "f1")]
    for metric, (pooling, similarity) in zip(found, options, strict=True):
        own = SimLLM(model_folder, pooling=pooling, similarity=similarity, long="whole")
        assert metric.name == f"{pooling or 'tokens'}, {similarity}"
        expected = own.score(*texts).values
        assert np.abs(pair_scores(metric, *texts) - expected).max() < 1e-6
        assert metric.signature == own.signature


def test_the_model_is_loaded_once_and_each_text_is_encoded_once(model_folder, texts):
    encoded = []
    call = TorchEngine.__call__

    def counted(engine, tokens, mask, *layers):
        encoded.extend(tuple(row[kept].tolist()) for row, kept in zip(tokens, mask, strict=True))
        return call(engine, tokens, mask, *layers)

    with (
        mock.patch.object(saved_model, "load", wraps=saved_model.load) as load,
        mock.patch.object(TorchEngine, "__call__", counted),
    ):
        for metric in model_variants.load_variants(model_folder):
            pair_scores(metric, *texts)
    assert load.call_count == 1
    assert len(encoded) == len(set(encoded)) > 60
