"""Postprocessing of a trained model for its release: weights with 8 bits, and embeddings with mean 0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from simllm.model import pooling, saved_model
from simllm.model.encoder import of_last_layer
from simllm.model.inference import Engine
from simllm.model.saved_model import SavedModel
from simllm.model.weight_quantization import round_to_blocks
from simllm.scoring import embed_texts, token_windows

_EVERY = 20  # only every 20th comment is embedded, which is enough for the mean embedding


def postprocess(run: Path, folder: Path, comments: Sequence[str]) -> None:
    """Make the released model from the model of a training run: round its weights and shift its embeddings.

    Args:
        run: The folder of the training run.
        folder: The model folder to write.
        comments: Texts. The embeddings of the model are shifted so that the mean over these texts becomes
            about 0. To save time, the mean is taken over every 20th text only. Without texts, embeddings are
            not shifted.
    """
    model = saved_model.load(run / "model")
    save_rounded(model, folder, comments[::_EVERY])


def save_rounded(model: SavedModel, folder: Path, comments: Sequence[str] = ()) -> None:
    """Round the weights of a model to 8-bit precision, and write the model to a folder.

    The folder stores the rounded weights as float16 numbers. If `comments` has texts, the embeddings of the
    model are also shifted, so that the mean embedding of these texts is 0.

    Args:
        model: The model, which is changed in place.
        folder: The model folder to write.
        comments: Texts for the shift. If there are none, embeddings are not shifted.
    """
    for network in (model.encoder, model.head):
        if network:
            round_to_blocks(network)
    if comments:
        centre_embeddings(model, comments)
    saved_model.save(folder, model.encoder, model.tokenizer, model.info, "", torch.float16, model.head)


def centre_embeddings(model: SavedModel, texts: Sequence[str]) -> None:
    """Shift the embeddings of a model, in place, so that the mean embedding of some texts is 0.

    Unrelated texts then score about 0. Because mean pooling is linear, it is enough to change the bias
    of the last layer norm. The bias of the meaning head is changed, too, so that the results of the head stay
    the same.

    Args:
        model: The model.
        texts: The texts over which the mean is taken.
    """
    tokenized = token_windows.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embeddings = embed_texts.embed(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    shift = torch.from_numpy(embeddings.mean(axis=0))
    last.norm.bias.data -= shift
    if model.head:
        weight = of_last_layer(model.head.project.weight.data, len(shift))
        model.head.project.bias.data += weight @ shift
