"""Loading of configuration files: YAML with `${data}` for the data folder, and overrides `key=value`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from simllm.errors import InputError
from simllm.io.strict_loading import build

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
    return build(cls, _read(file, overrides), str(file))


def _read(file: Path, overrides: list[str]) -> Any:
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
    values = _map_texts(_without_nulls(values), _encode_path)
    root = (values.pop("data", None) if isinstance(values, dict) else None) or data_root()
    if not isinstance(root, str):
        raise InputError(f"{file}: data must name a folder, not {root!r}")
    return _map_texts(values, lambda text: text.replace("${data}", root))


def data_root() -> str:
    """Return the folder of the data sets: the value of the environment variable `SIMLLM_DATA`, or "data"."""
    return os.environ.get("SIMLLM_DATA") or "data"


def hide_data_root(values: Any) -> Any:
    """Replace the data folder at the start of paths by the placeholder `${data}`.

    Args:
        values: Nested dictionaries, lists and tuples of configuration values.

    Returns:
        A copy. If a string starts with `data_root()` and a slash, `${data}` takes the place of `data_root()`.
    """
    root = f"{data_root()}/"
    return _map_texts(
        values, lambda text: "${data}/" + text.removeprefix(root) if text.startswith(root) else text
    )


def decode_paths(values: Any) -> Any:
    """Decode all strings in nested configuration values as UTF-8, whatever the encoding of the locale.

    The strings may be paths from the command line. In an ASCII locale, Python has replaced each of their
    non-ASCII bytes by a surrogate character. This function restores the bytes and decodes them as UTF-8.

    Args:
        values: Nested dictionaries, lists and tuples of configuration values.

    Returns:
        A copy with all strings decoded.
    """
    return _map_texts(values, lambda text: os.fsencode(text).decode("utf-8", "surrogateescape"))


def _encode_path(text: str) -> str:
    """Convert a string of a configuration to the form that `open` expects for paths in the current locale.

    In an ASCII locale, each byte of a non-ASCII character becomes a surrogate character. In a UTF-8 locale,
    the string stays the same. `decode_paths` does the opposite.
    """
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def _map_texts(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of nested dictionaries, lists and tuples, with `change` applied to each string."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {_map_texts(key, change): _map_texts(value, change) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_map_texts(value, change) for value in values)
    return values


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


def _main() -> int:
    """Print the run folder (the value of the key `out`) of a configuration file; the job scripts call this.

    The command line is `CONFIG [key=value …]`. The exit status is 0, or 2 for bad input.
    """
    file, *overrides = sys.argv[1:]
    try:
        sys.stdout.buffer.write(os.fsencode(_read(Path(file), overrides)["out"]))
    except (InputError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
