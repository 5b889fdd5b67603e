"""Postprocessing of a trained model for its release: weights of 8 bits, and centred embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from simllm.model import saved_model
from simllm.model.saved_model import SavedModel
from simllm.model.weight_quantization import round_to_blocks
from train.release.embedding_centring import SAMPLE_STEP, centre_embeddings


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
