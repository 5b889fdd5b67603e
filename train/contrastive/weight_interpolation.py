"""Interpolation between the weights of two models."""

from __future__ import annotations

from dataclasses import replace

from simllm.errors import InputError
from simllm.model.checkpoint import Checkpoint


def interpolate_weights(end: Checkpoint, start: Checkpoint, share: float) -> Checkpoint:
    """Mix the encoder weights of two models: share * start + (1 - share) * end.

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
        raise InputError("the models have different shapes or vocabularies; their weights cannot be mixed")
    before = start.encoder.state_dict()
    mixed = {name: share * before[name] + (1 - share) * x for name, x in end.encoder.state_dict().items()}
    end.encoder.load_state_dict(mixed)
    facts = {**end.info.provenance, "start_share": share}
    return replace(end, info=replace(end.info, provenance=facts))
