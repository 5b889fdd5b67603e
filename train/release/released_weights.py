"""Postprocess a trained model for its release: mix weights, centre embeddings, round to 8 bits.

    python -m train.release.released_weights runs/meaning runs/mixed --start runs/distill/model --share 0.35

The command writes a model folder without card and figures, as the start of a further training.
`python -m train.release` makes the folder that is released.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from simllm.errors import InputError
from simllm.io import folders
from simllm.model import checkpoint, pooling
from simllm.model.checkpoint import Checkpoint
from simllm.model.inference import Engine
from simllm.model.weight_blocks import round_to_blocks
from simllm.scoring import encode
from train.runtime.command_line import run_tool

_EVERY = 20  # every 20th comment is enough to compute the mean embedding


def main() -> int:
    """Parse the command line, write the model folder, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.released_weights",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="the folder of the training run")
    parser.add_argument("folder", type=Path, help="the model folder to write")
    parser.add_argument(
        "--start", required=True, type=Path, metavar="MODEL", help="the model folder that is mixed in"
    )
    parser.add_argument(
        "--share", required=True, type=float, metavar="S", help="share of those weights, from 0 to 1"
    )
    options = parser.parse_args()
    return run_tool(lambda: _write(**vars(options)))


def _write(run: Path, folder: Path, start: Path, share: float) -> None:
    """Write the model folder; the arguments are those of `postprocess`."""
    if not 0 <= share <= 1:
        raise InputError(f"--share {share:g}: expected 0 to 1")
    folders.check(folder)
    folders.check_apart(folder, [run, start])
    with folders.replacing(folder) as candidate:
        postprocess(run, candidate, start, share, [])


def postprocess(run: Path, folder: Path, start: Path, share: float, comments: Sequence[str]) -> None:
    """Make the released model from the model of a training run.

    The weights may be mixed with the weights of another run. They are rounded to 8 bits, and stored as
    float16. The embeddings may be shifted.

    Args:
        run: The folder of the training run.
        folder: The model folder to write.
        start: The model folder whose weights are mixed in.
        share: The share of the weights from `start` in the mixture, from 0 (no mixing) to 1.
        comments: Embeddings are shifted so that the mean embedding of these comments is about 0. Without
            comments, embeddings are not shifted.
    """
    model = checkpoint.load(run / "model")
    if share:
        model = interpolate_weights(model, checkpoint.load(start), share)
    for network in (model.encoder, model.head):
        if network:
            round_to_blocks(network)
    if comments:
        centre_embeddings(model, comments[::_EVERY])
    checkpoint.save(folder, model.encoder, model.tokenizer, model.info, "", torch.float16, model.head)


def interpolate_weights(end: Checkpoint, start: Checkpoint, share: float) -> Checkpoint:
    """Mix the weights of two models: share * start + (1 - share) * end.

    See Wortsman et al., "Robust fine-tuning of zero-shot models", 2022.

    Args:
        end: The model to change; its encoder is changed in place.
        start: The model whose weights are mixed in.
        share: The share of `start`, 0 to 1.

    Returns:
        The model `end` with the mixed weights; its provenance names the share.

    Raises:
        InputError: The two models differ in shape or vocabulary.
    """
    if (end.encoder.config, end.tokenizer.hash) != (start.encoder.config, start.tokenizer.hash):
        raise InputError("the start has another shape or vocabulary; its weights cannot be mixed in")
    before = start.encoder.state_dict()
    mixed = {name: share * before[name] + (1 - share) * x for name, x in end.encoder.state_dict().items()}
    end.encoder.load_state_dict(mixed)
    facts = {**end.info.provenance, "start_share": share}
    return replace(end, info=replace(end.info, provenance=facts))


def centre_embeddings(model: Checkpoint, texts: Sequence[str]) -> None:
    """Shift the embeddings of a model, in place, so that the mean embedding of some texts is 0.

    Unrelated texts then score about 0. Because mean pooling is linear, it is enough to change the bias
    of the last layer norm. The bias of the meaning head is changed, too, so that its results stay the same.

    Args:
        model: The model.
        texts: The texts over which the mean is taken.
    """
    tokenized = encode.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embeddings = encode.embed(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    shift = torch.from_numpy(embeddings.mean(axis=0))
    last.norm.bias.data -= shift
    if model.head:
        model.head.project.bias.data += model.head.project.weight.data @ shift


if __name__ == "__main__":
    sys.exit(main())
