"""Translation of fairseq's parameter names to those of simllm, by way of canonical names.

fairseq's names are from fairseq/models/masked_permutation_net.py and
fairseq/modules/transformer_sentence_encoder.py of github.com/microsoft/MPNet. fairseq's RoBERTa is the same
network without relative positions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from simllm.errors import InputError

# Parts of our names, and of fairseq's, in the order in which they are replaced.
_FAIRSEQ_NAMES = {
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
_RELATIVE_BIAS = "sentence_encoder.relative_attention_bias.weight"
# Heads, a version number, and the copies of weights that fairseq 0.12 makes for inference.
_IGNORED_WEIGHTS = re.compile(
    r"(lm_head|classification_heads)\.|sentence_encoder\.(version|layers\.\d+\.(in_proj|out_proj|fc1|fc2)_)"
)


def fairseq_name(name: str) -> str:
    """Translate a parameter name of `PermutedLanguageModel` to the canonical name.

    `encoder.embeddings.token.weight` becomes `sentence_encoder.embed_tokens.weight`.
    """
    for ours, theirs in _FAIRSEQ_NAMES.items():
        name = name.replace(ours, theirs)
    return name


def canonical_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of a checkpoint to canonical names, and split joint projections of query, key and
    value.
    """
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


def rename_weights(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename canonical weights to simllm's names, and convert them to float32.

    `expected` is the `state_dict` of a `PermutedLanguageModel`; weights of heads that it lacks are left out.
    The InputError names all weights that are missing, unknown, not finite or of a wrong shape.
    """
    names = {fairseq_name(ours): ours for ours in expected}
    problems = [
        f"{name} is unknown" for name in weights if name not in names and not _IGNORED_WEIGHTS.match(name)
    ]
    state = {}
    for name, ours in names.items():
        tensor, like = weights.get(name), expected[ours]
        # RoBERTa has no relative position bias; 0 has no effect.
        if tensor is None and name == _RELATIVE_BIAS:
            tensor = torch.zeros(like.shape)
        if tensor is None:
            problems.append(f"{name} is missing")
        elif tensor.shape != like.shape:
            problems.append(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(like.shape)}")
        elif not tensor.is_floating_point():
            problems.append(f"{name} has whole numbers, expected floating-point numbers")
        elif not tensor.isfinite().all():
            problems.append(f"{name} holds values that are not finite")
        else:
            state[ours] = tensor.float()
    if problems:
        raise InputError("; ".join(problems))
    return state
