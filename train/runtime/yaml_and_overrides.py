"""Loading of configurations: YAML files with `${data}` for the data folder, and overrides `key=value`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml

from simllm.errors import InputError
from simllm.io.strict_dataclass_loading import build
from train.runtime.data_root import data_root
from train.runtime.map_nested_texts import map_texts
from train.runtime.path_encoding import decode_paths, encode_path

C = TypeVar("C")


def load(cls: type[C], file: Path, overrides: list[str]) -> C:
    """Load a configuration from a YAML file and apply overrides.

    In all values, `${data}` is replaced by the folder of the data sets. The key `data` of the file names this
    folder. Without the key, it is the folder that `data_root()` returns.

    Args:
        cls: The configuration class, such as `ContrastiveConfig`.
        file: The YAML file.
        overrides: `key=value` items. A key may name a nested value (`model.hidden_size=128`) or an
            item of a list, counted from 0 (`positives.1.share=0.5`). The value `null` removes an
            item of a list (`positives.1=null`).

    Returns:
        An instance of `cls` with checked values.

    Raises:
        InputError: The file cannot be read, or a key or value is unknown or wrong.
    """
    return build(cls, read_values(file, overrides), str(file))


def read_values(file: Path, overrides: list[str]) -> Any:
    """Read the nested values of a YAML file, and apply overrides; keys and values are not checked.

    Args:
        file: The YAML file.
        overrides: `key=value` items that replace values of the file, such as `model.hidden_size=128`.

    Returns:
        The values, with the folder of the data sets in place of `${data}`.

    Raises:
        InputError: The file cannot be read or is not YAML, or an override is wrong.
    """
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not valid YAML ({' '.join(str(error).split())})") from None
    for override in overrides:
        _apply_override(values, decode_paths(override))
    values = map_texts(_without_nulls(values), encode_path)
    root = (values.pop("data", None) if isinstance(values, dict) else None) or data_root()
    if not isinstance(root, str):
        raise InputError(f"{file}: data must name a folder, not {root!r}")
    return map_texts(values, lambda text: text.replace("${data}", root))


def _apply_override(values: Any, override: str) -> None:
    """Set one value in nested configuration values, in place.

    Args:
        values: Nested dictionaries and lists.
        override: `key=value`, such as `model.hidden_size=128` or, for item 1 of a list counted from 0,
            `positives.1.share=0.5`. The value is YAML.

    Raises:
        InputError: The override has no `=`, its value is not YAML, or its key does not fit `values`. For
            example, the key names a missing list item, or the key is `seed.x`, but `seed` is a number.
    """
    name, equals, text = override.partition("=")
    if not equals:
        raise InputError(f"{override!r}: expected key=value")
    path = name.split(".")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{override!r}: not a YAML value") from None
    for depth, key in enumerate(path):
        if isinstance(values, list):
            if not key.isdecimal() or int(key) >= len(values):
                raise InputError(f"{override!r}: {'.'.join(path[:depth])} has {len(values)} items, from 0")
        elif not isinstance(values, dict):
            raise InputError(f"{override!r}: {'.'.join(path[:depth])} holds no keys")
        place: Any = int(key) if isinstance(values, list) else key
        if depth == len(path) - 1:
            values[place] = value
        elif isinstance(values, dict):
            values = values.setdefault(place, {})
        else:
            values = values[place]


def _without_nulls(values: Any) -> Any:
    """Return a copy of nested dictionaries and lists, without the list items that are None.

    In this way, the override `positives.1=null` removes item 1 of a list. Dictionary values that are None are
    kept.
    """
    if isinstance(values, dict):
        return {key: _without_nulls(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_without_nulls(value) for value in values if value is not None]
    return values
