"""The model folder: one folder, three loaders (simllm, transformers, sentence-transformers).

config.json               the encoder's shape (an MPNet model to transformers)
model.safetensors         the weights, under transformers' names; large ones in shards, with an index
tokenizer.json            vocabulary and cleaning
simllm.json               pooling, similarity, provenance, calibration
README.md                 the model card
tokenizer_config.json, modules.json, …   what the other two loaders want to be told
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from simllm.errors import InputError
from simllm.io import files, folders
from simllm.io.strict import build, read_json
from simllm.model import weights
from simllm.model.config import ModelConfig
from simllm.model.encoder import Encoder
from simllm.model.score_scale import Calibration
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer

CONFIG, TOKENIZER, INFO = "config.json", "tokenizer.json", "simllm.json"


@dataclass(frozen=True)
class ModelInfo:
    """What `simllm.json` holds: how the model is meant to be used, and where it comes from."""

    pooling: str = "mean"
    similarity: str = "cosine"
    provenance: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model folder; `hash` identifies configuration and weights."""

    encoder: Encoder
    tokenizer: Tokenizer
    info: ModelInfo
    hash: str


# Our module names on the left, transformers' on the right.
_NAMES = {
    "embeddings.token.": "embeddings.word_embeddings.",
    "embeddings.position.": "embeddings.position_embeddings.",
    "embeddings.norm.": "embeddings.LayerNorm.",
    "relative_bias.table.": "encoder.relative_attention_bias.",
    "layers.": "encoder.layer.",
    ".attention.query.": ".attention.attn.q.",
    ".attention.key.": ".attention.attn.k.",
    ".attention.value.": ".attention.attn.v.",
    ".attention.output.": ".attention.attn.o.",
    ".attention_norm.": ".attention.LayerNorm.",
    ".up.": ".intermediate.dense.",
    ".down.": ".output.dense.",
}


# Weights that transformers may add; embeddings do not need them.
_NOT_OURS = ("pooler.", "lm_head.", "embeddings.position_ids")


def transformers_name(name: str) -> str:
    """The name that transformers' `MPNetModel` gives to the encoder's parameter `name`."""
    if name.startswith("layers.") and name.split(".")[2] == "norm":
        name = name.replace(".norm.", ".output.LayerNorm.")
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name


def load(folder: str | os.PathLike[str]) -> Checkpoint:
    """Load a model folder; raise InputError that says what is missing or wrong, and where."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such model folder")
    for name in (CONFIG, TOKENIZER):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; expected a model folder")
    stored = weights.files(folder)
    config = ModelConfig.load(folder / CONFIG)
    info = ModelInfo()
    if (folder / INFO).is_file():
        info = build(ModelInfo, read_json(folder / INFO), str(folder / INFO))
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    if tokenizer.vocab_size != config.vocab_size:
        raise InputError(
            f"{folder}: {TOKENIZER} has {tokenizer.vocab_size} tokens, {CONFIG} says {config.vocab_size}"
        )
    encoder = Encoder(config)
    encoder.load_state_dict(_weights(folder, encoder))
    digest = hashlib.sha256((folder / CONFIG).read_bytes())
    for file in stored:
        digest.update(file.read_bytes())
    return Checkpoint(encoder.eval(), tokenizer, info, digest.hexdigest()[:12])


def _weights(folder: Path, encoder: Encoder) -> dict[str, Tensor]:
    """Read the weights as float32 under our names; a missing or misshapen one is an error."""
    stored = weights.read(folder)
    names = {transformers_name(name) for name in encoder.state_dict()}
    for name in stored.keys() - names:
        if not name.startswith(_NOT_OURS):
            raise InputError(f"{folder}: weight {name} has no place in the model of {CONFIG}")
    state = {}
    for name, parameter in encoder.state_dict().items():
        tensor = stored.get(transformers_name(name))
        if tensor is None:
            raise InputError(f"{folder}: no weight {transformers_name(name)}")
        if tensor.shape != parameter.shape:
            shapes = f"{tuple(tensor.shape)}, expected {tuple(parameter.shape)}"
            raise InputError(f"{folder}: {transformers_name(name)} has shape {shapes}")
        if not tensor.isfinite().all():
            raise InputError(f"{folder}: {transformers_name(name)} holds values that are not finite")
        state[name] = tensor.float()
    return state


def save(
    folder: Path,
    encoder: Encoder,
    tokenizer: Tokenizer,
    info: ModelInfo,
    card: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a model folder, whole or not at all; `dtype` is that of the stored weights."""
    state = {
        transformers_name(name): tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in encoder.state_dict().items()
    }
    with folders.replacing(folder) as partial:
        encoder.config.save(partial / CONFIG)
        save_file(state, partial / weights.WHOLE, metadata={"format": "pt"})
        shutil.copymode(partial / CONFIG, partial / weights.WHOLE)  # save_file lets nobody else read it
        files.write(partial / TOKENIZER, tokenizer.backend.to_str(pretty=True))
        files.write(partial / "README.md", card)
        for name, values in {INFO: asdict(info), **_for_other_loaders(encoder.config, info)}.items():
            (partial / name).parent.mkdir(exist_ok=True)
            files.write(partial / name, json.dumps(values, indent=2) + "\n")


def _for_other_loaders(config: ModelConfig, info: ModelInfo) -> dict[str, Any]:
    """The files that make transformers and sentence-transformers load the same model."""
    bos, pad, eos, unk, mask = SPECIAL_TOKENS
    module = "sentence_transformers.models."
    return {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config.max_length,
            "split_special_tokens": True,
            "bos_token": bos,
            "cls_token": bos,
            "eos_token": eos,
            "sep_token": eos,
            "pad_token": pad,
            "unk_token": unk,
            "mask_token": mask,
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": module + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": module + "Pooling"},
        ],
        "sentence_bert_config.json": {"max_seq_length": config.max_length, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": config.hidden_size,
            "pooling_mode_cls_token": info.pooling == "cls",
            "pooling_mode_mean_tokens": info.pooling == "mean",
            "pooling_mode_max_tokens": info.pooling == "max",
        },
    }


def default_model() -> Path:
    """The model folder that comes with the package, or with the checkout it runs from."""
    installed = Path(str(resources.files("simllm"))) / "default_model"
    checkout = Path(__file__).parents[2] / "checkpoints" / "default"
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise InputError(f"no default model in {installed} or {checkout}; name a model folder")
