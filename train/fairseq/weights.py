"""The weights of MPNet's fairseq model under our names.

Source: fairseq/models/masked_permutation_net.py and fairseq/modules/transformer_sentence_encoder.py
of github.com/microsoft/MPNet. fairseq's own RoBERTa, the same network without relative positions,
has the same weights under names that differ from version to version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from simllm.errors import InputError

# Parts of our names on the left, of fairseq's on the right; applied in this order.
_NAMES = {
    "head.": "lm_head.",
    "lm_head.norm.": "lm_head.layer_norm.",
    "encoder.": "sentence_encoder.",
    "embeddings.token.": "embed_tokens.",
    "embeddings.position.": "embed_positions.",
    "embeddings.norm.": "emb_layer_norm.",
    "relative_bias.table.": "relative_attention_bias.",
    ".attention.query.": ".self_attn.q_proj.",
    ".attention.key.": ".self_attn.k_proj.",
    ".attention.value.": ".self_attn.v_proj.",
    ".attention.output.": ".self_attn.out_proj.",
    ".attention_norm.": ".self_attn_layer_norm.",
    ".norm.": ".final_layer_norm.",
    ".up.": ".fc1.",
    ".down.": ".fc2.",
}

EMBEDDING = "sentence_encoder.embed_tokens.weight"
_OPTIONAL = "sentence_encoder.relative_attention_bias.weight"
# Heads, a version number, and copies of a layer's weights that fairseq 0.12 makes for inference.
_NEEDLESS = re.compile(
    r"(lm_head|classification_heads)\.|sentence_encoder\.(version|layers\.\d+\.(in_proj|out_proj|fc1|fc2)_)"
)


def fairseq_name(name: str) -> str:
    """The canonical fairseq name of `PermutedLanguageModel`'s parameter `name`."""
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name


def canonical(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the weights of any version one set of names; a joint projection becomes its three parts."""
    result = {}
    for name, tensor in weights.items():
        name = re.sub(r"^(decoder|encoder)\.", "", name)
        name = name.replace(".layernorm_embedding.", ".emb_layer_norm.")
        joint = re.fullmatch(r"(.*\.self_attn\.)in_proj_(weight|bias)", name)
        if joint and tensor.dim() and len(tensor) % 3 == 0:
            for letter, part in zip("qkv", tensor.chunk(3), strict=True):
                result[f"{joint[1]}{letter}_proj.{joint[2]}"] = part
        else:
            result[name] = tensor
    return result


def renamed(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Canonical weights as float32 under the names of `wanted`, a `PermutedLanguageModel`'s state.

    Without relative positions the table is zero: the same scores. Heads that are not wanted are
    left out. All that is missing, misshapen, not finite or unknown is one InputError.
    """
    names = {fairseq_name(ours): ours for ours in wanted}
    problems = [f"{name} is unknown" for name in weights if name not in names and not _NEEDLESS.match(name)]
    state = {}
    for name, ours in names.items():
        tensor, expected = weights.get(name), wanted[ours]
        if tensor is None and name == _OPTIONAL:
            tensor = torch.zeros_like(expected)
        if tensor is None:
            problems.append(f"{name} is missing")
        elif tensor.shape != expected.shape:
            problems.append(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(expected.shape)}")
        elif not tensor.isfinite().all():
            problems.append(f"{name} holds values that are not finite")
        else:
            state[ours] = tensor.float()
    if problems:
        raise InputError("; ".join(problems))
    return state
