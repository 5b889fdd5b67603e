"""Loading of BERT and MPNet weights into simllm's encoder, which is an MPNet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io.read_json_object import read_json
from simllm.model.encoder import Encoder
from simllm.model.model_config import ModelConfig
from simllm.model.read_weights import read_weights
from simllm.model.transformers_weight_names import transformers_name

KINDS = ("bert", "mpnet")  # model types that simllm's encoder can run
_SHAPE = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size".split()
_OPTIONAL = ("relative_attention_num_buckets", "hidden_act", "layer_norm_eps")

# Parts of BERT's parameter names -> of MPNet's.
_BERT_NAMES = {
    ".attention.self.query.": ".attention.attn.q.",
    ".attention.self.key.": ".attention.attn.k.",
    ".attention.self.value.": ".attention.attn.v.",
    ".attention.output.dense.": ".attention.attn.o.",
    ".attention.output.LayerNorm.": ".attention.LayerNorm.",
}


def load_encoder(folder: Path) -> Encoder:
    """Load the weights from a BERT or MPNet folder into simllm's encoder, which is an MPNet.

    BERT differs from MPNet in three ways. It has no relative position bias, so the bias is set to 0. Its
    position vectors start at row 0 of their table instead of row 2, so two rows are inserted. It adds a token
    type vector to all tokens, so this vector is added to the position vectors.

    Args:
        folder: A model folder in the format of transformers.

    Raises:
        InputError: The folder has another kind of model, or a weight is missing.
    """
    file = folder / "config.json"
    facts = read_json(file)
    kind = facts.get("model_type")
    if kind not in KINDS:
        raise InputError(f"{file}: expected model_type bert or mpnet, not {kind!r}")
    wrong = [name for name in (*_SHAPE, "max_position_embeddings") if not isinstance(facts.get(name), int)]
    if wrong:
        raise InputError(f"{file}: expected a number under {wrong[0]}")
    if facts.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{file}: only absolute positions are known")
    stored = {name.removeprefix(f"{kind}."): tensor for name, tensor in read_weights(folder).items()}
    shape = {name: facts[name] for name in (*_SHAPE, *_OPTIONAL) if name in facts}
    positions = facts["max_position_embeddings"] + (2 if kind == "bert" else 0)
    try:
        config = ModelConfig(**{"layer_norm_eps": 1e-12} | shape, max_position_embeddings=positions)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    encoder = Encoder(config)
    try:
        if kind == "bert":
            stored = _as_mpnet(stored, config)
        encoder.load_state_dict(
            {name: stored[transformers_name(name)].float() for name in encoder.state_dict()}
        )
    except KeyError as error:
        raise InputError(f"{folder}: no weight {error}") from None
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder}: not the weights of its config.json ({reason})") from None
    return encoder


def _as_mpnet(stored: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Convert BERT weights to the weights of an MPNet that computes the same hidden states.

    Args:
        stored: The weights by their BERT names.
        config: The shape of the MPNet, such as its number of layers.

    Returns:
        The weights by their MPNet names.
    """
    result = {_mpnet_name(name): tensor for name, tensor in stored.items()}
    table = stored["embeddings.position_embeddings.weight"].float()
    table = table + stored["embeddings.token_type_embeddings.weight"][0].float()
    result["embeddings.position_embeddings.weight"] = torch.cat([torch.zeros(2, table.shape[1]), table])
    buckets = (config.relative_attention_num_buckets, config.num_attention_heads)
    result["encoder.relative_attention_bias.weight"] = torch.zeros(buckets)
    return result


def _mpnet_name(name: str) -> str:
    """Translate the name of a parameter from BERT to MPNet."""
    for theirs, ours in _BERT_NAMES.items():
        name = name.replace(theirs, ours)
    return name
