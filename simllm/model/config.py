"""Frozen dataclasses and their strict loading: an unknown or missing key is an error."""

from __future__ import annotations

import contextlib
import json
import math
import reprlib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from simllm.errors import InputError

T = TypeVar("T")

# What transformers writes into config.json for its own bookkeeping.
_BOOKKEEPING = {
    "architectures",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "tie_word_embeddings",
    "_name_or_path",
}


_SPECIAL_TOKENS = 5  # as in simllm.model.tokenizer, which not everybody needs to load


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the encoder, under the names of transformers' `MPNetConfig`.

    The defaults are the paper's base size; `max_position_embeddings` counts two rows
    before the first position, as MPNet does, so it is the longest input plus two.
    """

    vocab_size: int = 40_000
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 514
    relative_attention_num_buckets: int = 32
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    hidden_act: str = "gelu"
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    bos_token_id: int = 0
    pad_token_id: int = 1
    eos_token_id: int = 2

    def __post_init__(self) -> None:
        problems = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_prob"):
                if not 0 <= value < 1:
                    problems.append(f"{field.name} must be from 0 to below 1")
            elif isinstance(value, int | float) and not field.name.endswith("_id") and not value > 0:
                problems.append(f"{field.name} must be positive")
        if not problems and self.hidden_size % self.num_attention_heads:
            problems.append(
                f"hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.max_position_embeddings < 5:
            problems.append("max_position_embeddings must be at least 5, for a text of one token")
        if self.vocab_size <= _SPECIAL_TOKENS:
            problems.append(f"vocab_size must be more than the {_SPECIAL_TOKENS} special tokens")
        if self.hidden_act != "gelu":
            problems.append(f"hidden_act {self.hidden_act!r}: only 'gelu' (the exact one) is known")
        if (self.bos_token_id, self.pad_token_id, self.eos_token_id) != (0, 1, 2):
            problems.append("bos_token_id, pad_token_id, eos_token_id must be 0, 1, 2")
        if problems:
            raise InputError("; ".join(problems))

    @property
    def max_length(self) -> int:
        """Longest input, in tokens, special tokens included."""
        return self.max_position_embeddings - 2

    @classmethod
    def load(cls, file: Path) -> ModelConfig:
        """Read a model folder's `config.json`; raise InputError for anything unexpected."""
        values = read_json(file)
        if values.pop("model_type", None) != "mpnet":
            raise InputError(f"{file}: model_type is not 'mpnet'")
        return build(cls, {k: v for k, v in values.items() if k not in _BOOKKEEPING}, str(file))

    def save(self, file: Path) -> None:
        """Write `config.json` so that transformers reads it as an MPNet model in float32."""
        head = {"model_type": "mpnet", "architectures": ["MPNetModel"], "dtype": "float32"}
        file.write_text(json.dumps(head | asdict(self), indent=2) + "\n")


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON object from `file`; raise InputError that names the file."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{file}: not valid JSON ({error})") from None
    if not isinstance(values, dict):
        raise InputError(f"{file}: expected a JSON object")
    return values


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make the dataclass `cls` from `values`; all problems are reported at once, by name."""
    problems: list[str] = []
    made = _build(cls, values, "", problems)
    if problems:
        raise InputError(f"{where}: " + "; ".join(problems))
    return typing.cast(T, made)


def _build(cls: type, values: Any, prefix: str, problems: list[str]) -> Any:
    if not isinstance(values, Mapping):
        problems.append(f"{prefix.rstrip('.') or 'the file'} must hold keys, not {values!r}")
        return None
    hints = typing.get_type_hints(cls)
    known = {field.name: field for field in fields(cls)}
    problems.extend(f"unknown key {prefix}{name}" for name in values if name not in known)
    arguments: dict[str, Any] = {}
    usable = True
    for name, field in known.items():
        if name in values:
            before = len(problems)
            arguments[name] = _value(hints[name], values[name], prefix + name, problems)
            usable &= len(problems) == before or is_dataclass(arguments[name])
        elif field.default is not MISSING:
            arguments[name] = field.default
        elif field.default_factory is not MISSING:
            arguments[name] = field.default_factory()
        else:
            problems.append(f"missing key {prefix}{name}")
            usable = False
    if not usable:
        return None
    try:
        return cls(**arguments)
    except InputError as error:
        problems.append(f"{prefix.rstrip('.')}: {error}" if prefix else str(error))
    unchecked: Any = object.__new__(cls)  # so that what holds it can be checked, too
    for name, value in arguments.items():
        object.__setattr__(unchecked, name, value)
    return unchecked


def _value(hint: Any, value: Any, name: str, problems: list[str]) -> Any:
    """Convert one value to the type its field is declared with."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        if value is None:
            return None
        hint = next(h for h in typing.get_args(hint) if h is not type(None))
    if is_dataclass(hint):
        return _build(typing.cast(type, hint), value, name + ".", problems)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            problems.append(f"{name} must be a list, not {value!r}")
            return None
        item = typing.get_args(hint)[0]
        return tuple(_value(item, part, f"{name}[{i}]", problems) for i, part in enumerate(value))
    hint = typing.get_origin(hint) or hint
    if hint is float and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            value = float(value)  # 1e-4, without a point, is a string to YAML
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(f"{name} must be a finite number, not {value!r}")
    if type(value) is not hint:
        problems.append(f"{name} must be of type {hint.__name__}, not {reprlib.repr(value)}")
    return value
