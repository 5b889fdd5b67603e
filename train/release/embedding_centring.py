"""Centring of a model's embeddings, after which unrelated texts score about 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from simllm.model import pooling
from simllm.model.encoder import of_last_layer
from simllm.model.exact_and_fast_mode import Engine
from simllm.model.saved_model import SavedModel
from simllm.scoring import embed_texts, token_windows

# Only every 20th comment is embedded, which is enough for the mean embedding.
SAMPLE_STEP = 20


def centre_embeddings(model: SavedModel, texts: Sequence[str]) -> None:
    """Shift the embeddings of a model, in place, so that the mean embedding of the given texts is 0."""
    tokenized = token_windows.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embeddings = embed_texts.embed(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    shift = torch.from_numpy(embeddings.mean(axis=0))
    # Because mean pooling is linear, it is enough to change the bias of the last layer norm.
    last.norm.bias.data -= shift
    if model.head:
        # The meaning head takes the shifted vectors as inputs. Its own bias undoes the shift, so that its
        # results stay the same.
        weight = of_last_layer(model.head.project.weight.data, len(shift))
        model.head.project.bias.data += weight @ shift
