"""From trained runs to the model that is released: weights averaged, centred, in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from simllm import checkpoint, encode, pooling
from simllm.checkpoint import Checkpoint
from simllm.engine import Engine
from simllm.errors import InputError

_SOME = 20  # every so many-th comment is enough to know their mean


def finish(runs: Sequence[Path], comments: Sequence[str], folder: Path) -> None:
    """Write the mean of the runs' models, in half precision, centred where there are comments."""
    made = averaged([checkpoint.load(run / "model") for run in runs])
    if comments:
        centre(made, comments[::_SOME])
    checkpoint.save(folder, made.encoder, made.tokenizer, made.info, "", torch.float16)


def averaged(models: Sequence[Checkpoint]) -> Checkpoint:
    """The last model, with the mean of all models' weights (Wortsman et al., "Model soups", 2022).

    Raises InputError where they are not of one shape and vocabulary.
    """
    last = models[-1]
    for model in models:
        if (model.encoder.config, model.tokenizer.hash) != (last.encoder.config, last.tokenizer.hash):
            raise InputError("models of different shapes or vocabularies have no mean")
    states = [model.encoder.state_dict() for model in models]
    mean = {name: torch.stack([state[name] for state in states]).mean(0) for name in states[-1]}
    last.encoder.load_state_dict(mean)
    if len(models) == 1:
        return last
    facts = {**last.info.provenance, "mean_of": [model.hash for model in models]}
    return replace(last, info=replace(last.info, provenance=facts))


def centre(model: Checkpoint, texts: Sequence[str]) -> None:
    """Shift all states, by the last layer norm's bias, so that the mean embedding of texts is 0.

    Unrelated texts then score about 0; mean pooling is linear, so that nothing else is needed.
    """
    tokenized = encode.tokenized(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embedded = encode.embeddings(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    last.norm.bias.data -= torch.from_numpy(embedded.mean(axis=0))
