"""Import of an MPNet checkpoint of fairseq as a model folder; its parameters get canonical names first.

fairseq's names are from fairseq/models/masked_permutation_net.py and
fairseq/modules/transformer_sentence_encoder.py of github.com/microsoft/MPNet. fairseq's RoBERTa is the same
network without relative positions.
"""

from __future__ import annotations

import argparse
import datetime
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.reading import build, shown
from simllm.model import saved_model
from simllm.model.config import ModelConfig
from simllm.model.network import Encoder, on_meta
from simllm.model.tokenizer import UNK_ID, Tokenizer
from train.fairseq import dictionary
from train.runtime.log import print_progress
from train.runtime.provenance import training_card

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


# Our names of settings, and fairseq's.
_SETTINGS = {
    "hidden_size": "encoder_embed_dim",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
    "intermediate_size": "encoder_ffn_embed_dim",
    "max_position_embeddings": "max_positions",
    "hidden_act": "activation_fn",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
# The only values that our encoder supports; older versions of fairseq lack the settings.
_SUPPORTED = {"normalize_before": False, "no_scale_embedding": True}


class _Ignored:
    """Placeholder for unneeded objects that fairseq 0.8 stores with the weights."""


_METERS = [(_Ignored, f"fairseq.meters.{kind}Meter") for kind in ("Average", "Time", "Stopwatch")]


def import_checkpoint(
    model: Path, dict_txt: Path, tokenizer: Tokenizer, out: Path, mismatch_as_unk: bool = False
) -> None:
    """Convert a checkpoint to a model folder; the tokenizer's tokens are matched with the symbols by name.

    With `mismatch_as_unk`, a token without a symbol gets the embedding of `<unk>`, and a symbol without a
    token is left out. Otherwise, both are errors.
    """
    stored, settings = read_checkpoint(model)
    ids = dictionary.read_dictionary(dict_txt)
    rows = _rows(ids, tokenizer, mismatch_as_unk, str(dict_txt))
    if (table := stored.get(EMBEDDING)) is not None:
        if table.shape[:1] != (len(ids),):
            shape = f"{EMBEDDING} of {model} has shape {tuple(table.shape)}"
            raise InputError(f"{dict_txt}: {len(ids)} symbols with <mask>, but {shape}")
        stored[EMBEDDING] = table[rows]
    try:
        encoder = _encoder(stored, _config(settings, tokenizer.vocab_size))
    except InputError as error:
        raise InputError(f"{model}: {error}") from None
    facts = {
        "source": f"fairseq checkpoint {model.name}",
        "sha256": output_file.sha256_of(model),
        "architecture": str(settings.get("arch", "unknown")),
        "date": datetime.date.today().isoformat(),
    }
    card = training_card("Imported from fairseq", facts)
    saved_model.save(out, encoder, tokenizer, saved_model.ModelInfo(provenance=facts), card)


def read_checkpoint(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the weights by canonical name, and the settings.

    Only tensors and plain values are unpickled, so that the file cannot run code.
    """
    try:
        # torch writes the weights uncompressed; others may expand without bound.
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                    raise InputError(f"{file}: refused, it is compressed; torch.save does not compress")
        with torch.serialization.safe_globals([argparse.Namespace, *_METERS]):
            stored = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except InputError:
        raise
    # A damaged file may raise anything.
    except Exception as error:
        if refused := re.search(r"GLOBAL (\S+)", str(error)):
            raise InputError(f"{file}: refused, it holds more than weights ({refused[1]})") from None
        raise InputError(f"{file}: damaged, or not a checkpoint of fairseq") from None
    model = stored.get("model") if isinstance(stored, dict) else None
    if not isinstance(model, Mapping) or not all(isinstance(weight, Tensor) for weight in model.values()):
        raise InputError(f'{file}: no weights under "model"; expected a checkpoint of fairseq')
    for name, weight in model.items():  # a view may repeat a few stored values without bound
        if weight.numel() * weight.element_size() > weight.untyped_storage().nbytes():
            raise InputError(f"{file}: {shown(name)} has fewer values than its shape says")
    # Newer versions of fairseq store the settings under "cfg".
    settings = _as_dict(stored.get("args")) or _as_dict(_as_dict(stored.get("cfg")).get("model"))
    return canonical_weights(model), settings


def _as_dict(settings: object) -> dict[str, Any]:
    """Return settings as a dictionary; versions of fairseq store them in different types."""
    if isinstance(settings, argparse.Namespace):
        return vars(settings)
    return dict(settings) if isinstance(settings, Mapping) else {}


def _encoder(stored: Mapping[str, Tensor], config: ModelConfig) -> Encoder:
    """Build an encoder with the weights of `read_checkpoint`."""
    encoder, prefix = on_meta(lambda: Encoder(config)), "encoder."
    state = rename_weights(stored, {prefix + name: tensor for name, tensor in encoder.state_dict().items()})
    encoder.load_state_dict(
        {name.removeprefix(prefix): tensor for name, tensor in state.items()}, assign=True
    )
    return encoder


def _config(settings: Mapping[str, Any], vocab_size: int) -> ModelConfig:
    """Convert the settings of `read_checkpoint`; raise InputError if one is missing or not supported."""
    problems = [f"setting {name} is missing" for name in _SETTINGS.values() if settings.get(name) is None]
    problems += [
        f"{name}={settings[name]} is not supported"
        for name, supported in _SUPPORTED.items()
        if settings.get(name, supported) != supported
    ]
    if problems:
        raise InputError("; ".join(problems))
    values = {ours: settings[theirs] for ours, theirs in _SETTINGS.items()}
    config = build(ModelConfig, values | {"vocab_size": vocab_size}, "settings")
    # fairseq counts positions from the padding id + 1: its table has two rows more.
    return replace(config, max_position_embeddings=config.max_position_embeddings + 2)


def _rows(ids: Mapping[str, int], tokenizer: Tokenizer, mismatch_as_unk: bool, where: str) -> list[int]:
    """Find the row in fairseq's token embeddings for each token id of the tokenizer."""
    tokens = [str(tokenizer.backend.id_to_token(i)) for i in range(tokenizer.vocab_size)]
    # fairseq pads a dictionary with these symbols to a multiple of 8.
    expected = set(tokens) | {symbol for symbol in ids if re.fullmatch(r"madeupword\d{4}", symbol)}
    mismatches = [
        f"{len(names):,} {what}, such as {' '.join(names[:5])}"
        for names, what in (
            ([token for token in tokens if token not in ids], "of the tokenizer's tokens are not in it"),
            ([symbol for symbol in ids if symbol not in expected], "of its symbols are not in the tokenizer"),
        )
        if names
    ]
    if mismatches and not mismatch_as_unk:
        raise InputError(f"{where}: {'; '.join(mismatches)}; see --mismatch-as-unk")
    for mismatch in mismatches:
        print_progress(f"<unk>: {mismatch}")
    return [ids.get(token, UNK_ID) for token in tokens]
