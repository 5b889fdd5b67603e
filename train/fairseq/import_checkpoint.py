"""Import of an MPNet checkpoint of fairseq as a model folder of simllm.

The checkpoint has the weights and settings. fairseq's file `dict.txt` lists the symbols (tokens) in the order
of the rows of the token embeddings. Neither file defines how texts are split into tokens. Therefore, the user
must also give a tokenizer.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io.strict_dataclass_loading import build, shown
from simllm.model import saved_model
from simllm.model.encoder import Encoder
from simllm.model.model_config import ModelConfig
from simllm.model.read_weights import on_meta
from simllm.model.tokenizer import UNK_ID, Tokenizer
from train.fairseq import dictionary, parameter_names
from train.runtime.training_log_and_tensorboard import print_progress
from train.runtime.training_run_model_card import training_card

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
    """Convert an MPNet checkpoint of fairseq to a model folder of simllm.

    Args:
        model: The checkpoint file.
        dict_txt: The file `dict.txt` that fairseq used in training. It lists the symbols (tokens) of the
            vocabulary.
        tokenizer: The tokenizer; its tokens are matched with the symbols of `dict.txt` by name.
        out: The model folder to write.
        mismatch_as_unk: Whether `dict.txt` and the tokenizer may have different tokens. Then a token that is
            only in the tokenizer gets the embedding of `<unk>`. A token that is only in `dict.txt` is left
            out. If false, a difference is an error.

    Raises:
        InputError: A file cannot be read, or weights, settings, symbols and tokens do not fit together.
    """
    stored, settings = read_checkpoint(model)
    ids = dictionary.read_dictionary(dict_txt)
    rows = _rows(ids, tokenizer, mismatch_as_unk, str(dict_txt))
    if (table := stored.get(parameter_names.EMBEDDING)) is not None:
        if table.shape[:1] != (len(ids),):
            shape = f"{parameter_names.EMBEDDING} of {model} has shape {tuple(table.shape)}"
            raise InputError(f"{dict_txt}: {len(ids)} symbols with <mask>, but {shape}")
        stored[parameter_names.EMBEDDING] = table[rows]
    try:
        encoder = _encoder(stored, _config(settings, tokenizer.vocab_size))
    except InputError as error:
        raise InputError(f"{model}: {error}") from None
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    facts = {
        "source": f"fairseq checkpoint {model.name}",
        "sha256": digest,
        "architecture": str(settings.get("arch", "unknown")),
        "date": datetime.date.today().isoformat(),
    }
    card = training_card("Imported from fairseq", facts)
    saved_model.save(out, encoder, tokenizer, saved_model.ModelInfo(provenance=facts), card)


def read_checkpoint(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the weights and settings from a checkpoint of fairseq.

    Only tensors and plain values are unpickled, so that the file cannot run code.

    Returns:
        The weights by canonical name (the same for all versions of fairseq), and the settings by name.

    Raises:
        InputError: The file cannot be read, is not a checkpoint, or has objects other than tensors and plain
            values.
    """
    try:
        if zipfile.is_zipfile(file):  # torch writes the weights uncompressed; others may expand without bound
            with zipfile.ZipFile(file) as archive:
                if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                    raise InputError(f"{file}: refused, it is compressed; torch.save does not compress")
        with torch.serialization.safe_globals([argparse.Namespace, *_METERS]):
            stored = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except InputError:
        raise
    except Exception as error:  # a damaged file may raise anything
        if refused := re.search(r"GLOBAL (\S+)", str(error)):
            raise InputError(f"{file}: refused, it holds more than weights ({refused[1]})") from None
        raise InputError(f"{file}: damaged, or not a checkpoint of fairseq") from None
    model = stored.get("model") if isinstance(stored, dict) else None
    if not isinstance(model, Mapping) or not all(isinstance(weight, Tensor) for weight in model.values()):
        raise InputError(f'{file}: no weights under "model"; expected a checkpoint of fairseq')
    for name, weight in model.items():  # a view may repeat a few stored values without bound
        if weight.numel() * weight.element_size() > weight.untyped_storage().nbytes():
            raise InputError(f"{file}: {shown(name)} has fewer values than its shape says")
    settings = _as_dict(stored.get("args")) or _as_dict(_as_dict(stored.get("cfg")).get("model"))
    return parameter_names.canonical_weights(model), settings


def _as_dict(settings: object) -> dict[str, Any]:
    """Return fairseq's settings as a dictionary; versions of fairseq store them in different types.

    The dictionary is empty if the settings have an unknown type.
    """
    if isinstance(settings, argparse.Namespace):
        return vars(settings)
    return dict(settings) if isinstance(settings, Mapping) else {}


def _encoder(stored: Mapping[str, Tensor], config: ModelConfig) -> Encoder:
    """Build an encoder with the weights of a fairseq checkpoint.

    Args:
        stored: The weights, as `read_checkpoint` returns them.
        config: The configuration of the encoder.
    """
    encoder, prefix = on_meta(lambda: Encoder(config)), "encoder."
    state = parameter_names.rename_weights(
        stored, {prefix + name: tensor for name, tensor in encoder.state_dict().items()}
    )
    encoder.load_state_dict(
        {name.removeprefix(prefix): tensor for name, tensor in state.items()}, assign=True
    )
    return encoder


def _config(settings: Mapping[str, Any], vocab_size: int) -> ModelConfig:
    """Convert the settings of a fairseq checkpoint to a model configuration.

    Args:
        settings: The settings, as `read_checkpoint` returns them.
        vocab_size: Number of tokens in the vocabulary.

    Raises:
        InputError: A setting is missing or not supported.
    """
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
    return replace(config, max_position_embeddings=config.max_position_embeddings + 2)


def _rows(ids: Mapping[str, int], tokenizer: Tokenizer, mismatch_as_unk: bool, where: str) -> list[int]:
    """Find the row in fairseq's token embeddings for each token of the tokenizer.

    Args:
        ids: A dict from fairseq's symbols (tokens) to their rows in the token embeddings.
        tokenizer: The tokenizer.
        mismatch_as_unk: Whether symbols and tokens may differ. Then a token without a row gets the row of
            `<unk>`, and a symbol that is not a token is ignored.
        where: The path of `dict.txt`, for error messages.

    Returns:
        Row numbers, in the order of the token ids.

    Raises:
        InputError: Symbols and tokens differ, and `mismatch_as_unk` is false.
    """
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
