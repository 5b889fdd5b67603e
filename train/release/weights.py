"""Centring of a model's embeddings, after which unrelated texts score about 0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from simllm.model import pooling, saved_model
from simllm.model.encoder import of_last_layer
from simllm.model.engines import Engine
from simllm.model.saved_model import SavedModel, round_to_blocks
from simllm.scoring import embedding, tokens

# Only every 20th comment is embedded, which is enough for the mean embedding.
SAMPLE_STEP = 20


def centre_embeddings(model: SavedModel, texts: Sequence[str]) -> None:
    """Shift the embeddings of a model, in place, so that the mean embedding of the given texts is 0."""
    tokenized = tokens.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embeddings = embedding.embed(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    shift = torch.from_numpy(embeddings.mean(axis=0))
    # Because mean pooling is linear, it is enough to change the bias of the last layer norm.
    last.norm.bias.data -= shift
    if model.head:
        # The meaning head takes the shifted vectors as inputs. Its own bias undoes the shift, so that its
        # results stay the same.
        weight = of_last_layer(model.head.project.weight.data, len(shift))
        model.head.project.bias.data += weight @ shift


def postprocess(run: Path, folder: Path, comments: Sequence[str]) -> None:
    """Round the weights of a run's model, shift its embeddings to the mean of `comments`, and write a model
    folder.
    """
    model = saved_model.load(run / "model")
    save_rounded(model, folder, comments[::SAMPLE_STEP])


def save_rounded(model: SavedModel, folder: Path, comments: Sequence[str] = ()) -> None:
    """Round the weights of a model in place to 8 bits, and write them as float16.

    The embeddings are centred on `comments`, if there are any.
    """
    for network in (model.encoder, model.head):
        if network:
            round_to_blocks(network)
    # After the rounding, because the mean embedding depends on the rounded weights.
    if comments:
        centre_embeddings(model, comments)
    saved_model.save(folder, model.encoder, model.tokenizer, model.info, "", torch.float16, model.head)
