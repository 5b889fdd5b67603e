"""Loading of BERT and MPNet weights into simllm's encoder, which is an MPNet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from simllm.errors import InputError
from simllm.io.read_json_object import read_json
from simllm.io.strict_dataclass_loading import build
from simllm.model.encoder import Encoder
from simllm.model.model_config import ModelConfig
from simllm.model.read_weights import StoredWeight, check_shapes, fill, on_meta, read_headers, weight_files
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
_POSITIONS, _TYPES = "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"
_BIAS = "encoder.relative_attention_bias.weight"


def load_encoder(folder: Path) -> Encoder:
    """Load the weights of a BERT or MPNet folder, in the format of transformers, into simllm's encoder."""
    file = folder / "config.json"
    facts = read_json(file)
    kind = facts.get("model_type")
    if kind not in KINDS:
        raise InputError(f"{file}: expected model_type bert or mpnet, not {kind!r}")
    wrong = [name for name in (*_SHAPE, "max_position_embeddings") if type(facts.get(name)) is not int]
    if wrong:
        raise InputError(f"{file}: expected a number under {wrong[0]}")
    if facts.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{file}: only absolute positions are known")
    shape = {name: facts[name] for name in (*_SHAPE, *_OPTIONAL) if name in facts}
    # BERT's position vectors start at row 0 of their table, MPNet's at row 2: two rows are inserted.
    positions = facts["max_position_embeddings"] + (2 if kind == "bert" else 0)
    config = build(
        ModelConfig, {"layer_norm_eps": 1e-12, "max_position_embeddings": positions} | shape, str(file)
    )
    encoder = on_meta(lambda: Encoder(config))
    stored = {
        name.removeprefix(f"{kind}."): weight for name, weight in read_headers(weight_files(folder)).items()
    }
    if kind == "mpnet":
        # The ignored prefix "" is that of all names: weights that simllm lacks, such as a pooler, are left
        # out.
        fill(encoder, stored, str(folder), transformers_name, ignored=("",))
    else:
        _fill_from_bert(encoder, stored, folder)
    return encoder


def _fill_from_bert(encoder: Encoder, stored: Mapping[str, StoredWeight], folder: Path) -> None:
    """Read BERT weights into an encoder that was built by `on_meta` and computes the same hidden states."""
    names = {transformers_name(name): name for name in encoder.state_dict()}
    shapes = {name: tuple(encoder.state_dict()[own].shape) for name, own in names.items()}
    del shapes[_BIAS]
    rows, width = shapes[_POSITIONS]
    shapes[_POSITIONS] = (rows - 2, width)
    # BERT adds a token type vector to each token. Texts here have only type 0, so that its vector can be
    # added to the position vectors.
    kinds = stored[_TYPES].shape[:1] if _TYPES in stored else ()
    shapes[_TYPES] = (max((1, *kinds)), width)
    stored = {_mpnet_name(name): weight for name, weight in stored.items()}
    check_shapes(stored, shapes, str(folder))
    weights = {names[name]: stored[name].read() for name in shapes if name != _TYPES}
    table = weights[names[_POSITIONS]] + stored[_TYPES].read()[0]
    weights[names[_POSITIONS]] = torch.cat([torch.zeros(2, width), table])
    # BERT has no relative position bias; 0 has no effect.
    weights[names[_BIAS]] = torch.zeros(tuple(encoder.relative_bias.table.weight.shape))
    encoder.load_state_dict(weights, assign=True)


def _mpnet_name(name: str) -> str:
    for theirs, ours in _BERT_NAMES.items():
        name = name.replace(theirs, ours)
    return name
