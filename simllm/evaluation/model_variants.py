"""Variants of the learned metric: other poolings, other similarities, and checkpoints of its training."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io.packages import require_torch_extra
from simllm.metric import SimLLM
from simllm.metrics import registry
from simllm.metrics.cache import CachedMetric
from simllm.metrics.interface import FunctionMetric, Metric
from simllm.model import saved_model
from simllm.model.config import POOLINGS, SIMILARITIES
from simllm.scoring import token_matching
from simllm.scoring.embedding import Engine, PairValues, Tokenized
from simllm.scoring.scores import CHUNK, score_in_chunks
from simllm.scoring.token_matching import TOKEN_SIMILARITIES


@dataclass(frozen=True)
class TrainedModel:
    """A learned metric, and the number of optimizer updates of its training; 0 if the model is untrained."""

    metric: Metric
    updates: float

    @property
    def name(self) -> str:
        """The name of the checkpoint's folder, or "untrained"."""
        return self.metric.name


def load_variants(model: str | os.PathLike[str] | None) -> list[Metric]:
    """Load a model as one metric for each combination of pooling and similarity, such as "mean, cosine".

    Further metrics, such as "tokens, f1", compare tokens instead of pooled embeddings, as in Table 1 of the
    SIMLLM paper. None means the included model.
    """
    learned = SimLLM(model, long="whole")  # the variants of the paper
    pooled = [(f"{p}, {s}", learned.variant_signature(p, s)) for p in POOLINGS for s in SIMILARITIES]
    by_token = [(f"tokens, {s}", learned.variant_signature("", s)) for s in TOKEN_SIMILARITIES]

    @lru_cache(maxsize=1)  # the pairs of one rated set
    def score(candidates: tuple[str, ...], references: tuple[str, ...]) -> Floats:
        return _score_variants(learned, candidates, references)

    def variant(column: int, candidates: Sequence[str], references: Sequence[str]) -> Floats:
        # All variants share one run of the encoder, which takes nearly all the time. Tuples can be keys of a
        # cache.
        return score(tuple(candidates), tuple(references))[:, column]

    return [
        CachedMetric(FunctionMetric(name, signature, partial(variant, column)))
        for column, (name, signature) in enumerate([*pooled, *by_token])
    ]


def _score_variants(learned: SimLLM, candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Return the (n, v) scores of n pairs by all v variants of a model."""
    tokenizer = learned.model.tokenizer
    # Frequencies of the references, as the learned metric counts them by default.
    weights = learned.count_frequencies(references).weights(tokenizer)

    def scorer(texts: Tokenized) -> PairValues:
        return PairValues(_variant_columns(learned.engine, weights, texts))

    pairs = zip(candidates, references, strict=True)
    chunks = score_in_chunks(pairs, learned.tokenize, scorer, CHUNK, learned.no_scores)
    return np.concatenate([scores.values for _, scores in chunks])


def _variant_columns(engine: Engine, weights: Floats, texts: Tokenized) -> Floats:
    """Return the (n, v) scores of 2n tokenized texts: n candidates, and then their n references.

    `weights` are the (vocabulary size,) weights of tokens in token-level similarities.
    """
    n = len(texts.inputs) // 2
    states = token_matching.token_states(engine, texts, boundaries=True)
    columns = []
    for pool in POOLINGS.values():
        embeddings = np.stack([pool(text) for text in states])
        columns += [similarity(embeddings[:n], embeddings[n:]) for similarity in SIMILARITIES.values()]
    token_weights = [weights[token_matching.token_ids(windows)] for windows in texts.inputs]
    matched = [
        # Without the start and end tokens, which all texts share.
        token_matching.match(states[i][1:-1], states[n + i][1:-1], token_weights[i], token_weights[n + i])
        if len(token_weights[i]) and len(token_weights[n + i]) else None
        for i in range(n)
    ]  # fmt: skip
    columns += [
        np.array([similarity(*sides) if sides else 0.0 for sides in matched])
        for similarity in TOKEN_SIMILARITIES.values()
    ]
    return np.stack(columns, axis=1)


def load_checkpoints(folder: Path) -> list[TrainedModel]:
    """Load an untrained model, and then the checkpoints in a folder, sorted by their number of updates.

    The number is in a checkpoint's provenance (the record of its training), or else at the end of its
    folder's name.
    """
    model_folders = sorted(path.parent for path in folder.glob(f"*/{saved_model.CONFIG}"))
    if not model_folders:
        raise InputError(f"{folder}: no model folders in it; expected one for each checkpoint")
    models = [_load_trained(path) for path in model_folders]
    return [_make_untrained(model_folders[0]), *sorted(models, key=lambda model: model.updates)]


def _load_trained(folder: Path) -> TrainedModel:
    """Load a checkpoint as a metric, with its number of updates."""
    provenance = saved_model.load(folder).info.provenance
    number = re.search(r"(\d+)$", folder.name)
    updates = provenance.get("updates", number and int(number[1]))
    if isinstance(updates, bool) or not isinstance(updates, int | float) or not 0 <= updates < 1e15:
        raise InputError(f"{folder}: neither its provenance nor its name has a number of updates")
    return TrainedModel(registry.model_metric(folder.name, SimLLM(folder)), float(updates))


def _make_untrained(folder: Path) -> TrainedModel:
    """Make a metric with random weights in the shape of the model in `folder`."""
    with require_torch_extra():
        import torch

        from simllm.model.network import Encoder
    like = saved_model.load(folder)
    # The same random weights in every run, without a change of the caller's random numbers.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = Encoder(like.config)
    # SimLLM loads models from folders only.
    with tempfile.TemporaryDirectory() as place:
        saved_model.save(Path(place) / "model", encoder, like.tokenizer, like.info, "")
        return TrainedModel(registry.model_metric("untrained", SimLLM(Path(place) / "model")), 0)
