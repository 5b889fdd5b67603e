"""Loading of configurations: YAML files with `${data}` for the data folder, and overrides `key=value`."""

from __future__ import annotations

import reprlib
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

import yaml

from simllm.errors import InputError
from simllm.io.strict_dataclass_loading import build
from train.runtime.data_root import data_root
from train.runtime.map_nested_texts import map_texts
from train.runtime.path_encoding import decode_paths, encode_path

C = TypeVar("C")
_DEEPEST, _MOST = 50, 100_000  # levels and values of a file, after aliases are replaced


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key that stands twice; PyYAML would use the last value."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in keys.items():
            if count > 1:
                raise ValueError(f"key {key} stands twice, in {' '.join(str(node.start_mark).split())}")
        return super().construct_mapping(node, deep)


def _parse(text: str) -> Any:
    """Parse YAML; raise YAMLError or ValueError if it is wrong, too deep or too large."""
    _check_size(text)
    return yaml.load(text, _Loader)


def _check_size(text: str) -> None:
    """Check depth and number of the values of YAML, with aliases expanded, before values are built.

    An alias counts as much as the values that it repeats, so that a few lines cannot stand for a billion
    values. An alias inside of what it repeats has no end.
    """
    sizes: dict[str, int] = {}  # of the values with an anchor
    started: list[tuple[str | None, int]] = []  # anchor of each open list or mapping, and the count before it
    count = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in started):
                raise ValueError(f"*{event.anchor} is inside of itself")
            count += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            started.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = started.pop()
            if anchor:
                sizes[anchor] = count - before
        if count > _MOST or len(started) > _DEEPEST:
            raise ValueError(f"over {_MOST:,} values or {_DEEPEST} levels")


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
        values = _parse(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError) as error:  # the values may be no numbers or dates
        raise InputError(f"{file}: not valid YAML ({' '.join(str(error).split())[:300]})") from None
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
        value = _parse(text)
    except (yaml.YAMLError, ValueError):
        raise InputError(f"{reprlib.repr(override)}: not a YAML value") from None
    if len(path) > _DEEPEST:
        raise InputError(f"{reprlib.repr(override)}: the key has over {_DEEPEST} parts")
    for depth, key in enumerate(path):
        if isinstance(values, list):
            if not key.isdecimal() or len(key) > 9 or int(key) >= len(values):
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
