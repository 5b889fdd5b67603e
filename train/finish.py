"""From trained runs to the model that is released: averaged, centred, in half precision."""

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


def finish(runs: Sequence[Path], folder: Path, start: Path, share: float, comments: Sequence[str]) -> None:
    """Write the mean of these runs' models in half precision, with this share of the start's weights.

    Where there are comments, it is centred on them.
    """
    models = [(1.0 / len(runs) * (1.0 - share), checkpoint.load(run / "model")) for run in runs]
    if share:
        models.append((share, checkpoint.load(start / "model")))
    made = averaged(models)
    facts = {**made.info.provenance, "start_share": share, "averaged_runs": len(runs)}
    made = replace(made, info=replace(made.info, provenance=facts))
    if comments:
        centre(made, comments[::_SOME])
    checkpoint.save(folder, made.encoder, made.tokenizer, made.info, "", torch.float16)


def averaged(models: Sequence[tuple[float, Checkpoint]]) -> Checkpoint:
    """The first of the models, with the weighted mean of all for weights: of runs that differ in
    their seed (Wortsman et al., "Model soups", 2022), and of what they started from ("Robust
    fine-tuning of zero-shot models", 2022).

    Raises InputError where they are not of one shape and vocabulary.
    """
    first = models[0][1]
    shapes = {(model.encoder.config, model.tokenizer.hash) for _, model in models}
    if len(shapes) > 1:
        raise InputError("the runs differ in shape or vocabulary: their weights have no mean")
    states = [(share, model.encoder.state_dict()) for share, model in models]
    mean = {name: sum(share * state[name] for share, state in states) for name in states[0][1]}
    first.encoder.load_state_dict(mean)
    return first


def centre(model: Checkpoint, texts: Sequence[str]) -> None:
    """Shift all states, by the last layer norm's bias, so that the mean embedding of texts is 0.

    Unrelated texts then score about 0; mean pooling is linear, so that nothing else is needed.
    """
    tokenized = encode.tokenized(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embedded = encode.embeddings(Engine(model.encoder), tokenized, pooling.mean)
    last: Any = model.encoder.layers[-1]
    last.norm.bias.data -= torch.from_numpy(embedded.mean(axis=0))
