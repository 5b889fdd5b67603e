"""From a trained run to the model that is released: interpolated, centred, in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from simllm.errors import InputError
from simllm.model import checkpoint, pooling
from simllm.model.checkpoint import Checkpoint
from simllm.model.inference import Engine
from simllm.scoring import encode

_SOME = 20  # every so many-th comment is enough to know their mean


def finish(run: Path, folder: Path, start: Path, share: float, comments: Sequence[str]) -> None:
    """Write a run's model in half precision, with this share of the start's weights in its own.

    Where there are comments, it is centred on them.
    """
    made = checkpoint.load(run / "model")
    if share:
        made = interpolated(made, checkpoint.load(start / "model"), share)
    if comments:
        centre(made, comments[::_SOME])
    checkpoint.save(folder, made.encoder, made.tokenizer, made.info, "", torch.float16)


def interpolated(end: Checkpoint, start: Checkpoint, share: float) -> Checkpoint:
    """`end`, with share * start + (1 - share) * end for weights (Wortsman et al., "Robust fine-tuning
    of zero-shot models", 2022).

    Raises InputError where the two are not of one shape and vocabulary.
    """
    if (end.encoder.config, end.tokenizer.hash) != (start.encoder.config, start.tokenizer.hash):
        raise InputError("the start has another shape or vocabulary: no weights lie between the two")
    before = start.encoder.state_dict()
    mixed = {name: share * before[name] + (1 - share) * x for name, x in end.encoder.state_dict().items()}
    end.encoder.load_state_dict(mixed)
    facts = {**end.info.provenance, "start_share": share}
    return replace(end, info=replace(end.info, provenance=facts))


def centre(model: Checkpoint, texts: Sequence[str]) -> None:
    """Shift all states, by the last layer norm's bias, so that the mean embedding of texts is 0.

    Unrelated texts then score about 0; mean pooling is linear, so that nothing else is needed.
    """
    tokenized = encode.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embedded = encode.embed(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    last.norm.bias.data -= torch.from_numpy(embedded.mean(axis=0))
