"""Postprocessing of a trained model for its release: rounded weights (8 bits), and centred embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from simllm.model import saved_model
from simllm.model.saved_model import SavedModel
from simllm.model.weight_quantization import round_to_blocks
from train.release.embedding_centring import SAMPLE_STEP, centre_embeddings


def postprocess(run: Path, folder: Path, comments: Sequence[str]) -> None:
    """Make the released model from a training run's model: round its weights, and shift its embeddings.

    The weights are rounded to 8-bit precision.

    Args:
        run: The folder of the training run.
        folder: The model folder to write.
        comments: Texts for the shift. Embeddings are shifted so that the mean embedding of these texts is
            about 0. To save time, only every 20th text is used. Without texts, embeddings are not shifted.
    """
    model = saved_model.load(run / "model")
    save_rounded(model, folder, comments[::SAMPLE_STEP])


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
