"""Configurations of training: reading of YAML, overrides, and the settings that all stages share."""

from __future__ import annotations

import os
import reprlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from simllm.errors import InputError
from simllm.io.reading import build, whole_text


def map_texts(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of configuration values, with `change` applied to each string, keys included."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {map_texts(key, change): map_texts(value, change) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(map_texts(value, change) for value in values)
    return values


def data_root() -> str:
    """Return the folder of the data sets: the environment variable `SIMLLM_DATA`, or "data"."""
    return os.environ.get("SIMLLM_DATA") or "data"


def hide_data_root(values: Any) -> Any:
    """Replace the data folder at the start of paths in configuration values by the placeholder `${data}`.

    Configurations that are stored with a model then do not depend on where the data folder was.
    """
    root = f"{data_root()}/"
    return map_texts(
        values, lambda text: "${data}/" + text.removeprefix(root) if text.startswith(root) else text
    )


def shorten_paths(values: Any) -> Any:
    """Replace absolute paths in configuration values: relative to the working folder inside it, elsewhere by
    their names, so that a released model does not tell where the files of its training were.
    """
    here = Path.cwd()

    def shorten(text: str) -> str:
        path = Path(text)
        if not path.is_absolute():
            return text
        return str(path.relative_to(here)) if path.is_relative_to(here) else path.name or text

    return map_texts(values, shorten)


C = TypeVar("C")
_DEEPEST, _MOST = 50, 100_000  # levels and values of a file, after aliases are replaced


# Most installations of PyYAML have a parser in C, which is ten times as fast.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML's safe loader, which also refuses a key that stands twice; PyYAML would use the last value."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in keys.items():
            if count > 1:
                raise ValueError(
                    f"key {key} stands twice in the mapping that begins in line {node.start_mark.line + 1}"
                )
        return super().construct_mapping(node, deep)


def _parse(text: str) -> Any:
    _check_size(text)
    return yaml.load(text, _Loader)


def _check_size(text: str) -> None:
    """Check depth and number of the values of YAML, with aliases expanded, before values are built."""
    # An alias counts as much as the values that it repeats, so that a few lines cannot stand for a billion
    # values. An alias inside of what it repeats has no end.
    sizes: dict[str, int] = {}  # of the values with an anchor
    started: list[tuple[str | None, int]] = []  # anchor of each open list or mapping, and the count before it
    count = 0
    for event in yaml.parse(text, _SafeLoader):
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

    In all values, `${data}` is replaced by the folder of the data sets, which the file's key `data` names, or
    else `data_root()`. A key of an override may name a nested value (`model.hidden_size=128`) or an item of a
    list, counted from 0 (`positives.1.share=0.5`). The value `null` removes an item (`positives.1=null`). A
    file may name another one under `like`, by its path from its own folder, and has that file's values where
    it names none; a list is one value.
    """
    return build(cls, read_values(file, overrides), str(file))


def read_values(file: Path, overrides: list[str]) -> Any:
    """Read a YAML file and apply overrides and `${data}` as `load` does, but check no keys and values."""
    values = _read_file(file)
    for override in overrides:
        _apply_override(values, override)
    values = _without_nulls(values)
    root = (values.pop("data", None) if isinstance(values, dict) else None) or data_root()
    if not isinstance(root, str):
        raise InputError(f"{file}: data must name a folder, not {root!r}")
    return map_texts(values, lambda text: text.replace("${data}", root))


def _read_file(file: Path, above: tuple[Path, ...] = ()) -> Any:
    """Read a YAML file, and the one that it is like; `above` are the files that are like this one."""
    text = whole_text(file)
    try:
        values = _parse(text)
    except (yaml.YAMLError, ValueError) as error:  # the values may be no numbers or dates
        raise InputError(f"{file}: not valid YAML ({' '.join(str(error).split())[:300]})") from None
    if not isinstance(values, dict) or "like" not in values:
        return values
    name = values.pop("like")
    if not (isinstance(name, str) and name):
        raise InputError(f"{file}: like must name a file, not {name!r}")
    base, files = file.parent / name, (*above, file)
    if any(base.resolve() == each.resolve() for each in files):
        raise InputError(f"{file}: is like {name}, which is like this file")
    like = _read_file(base, files)
    if not isinstance(like, dict):
        raise InputError(f"{base}: expected keys with values")
    return _merge(like, values)


def _merge(base: Any, changes: Any) -> Any:
    """Return `base` with the values of `changes`, key by key where both are mappings."""
    if not (isinstance(base, dict) and isinstance(changes, dict)):
        return changes
    return base | {key: _merge(base.get(key), value) for key, value in changes.items()}


def _apply_override(values: Any, override: str) -> None:
    """Set one of the configuration values in place; the value of the override is YAML."""
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
            # No list has billions of items, and `int` refuses numbers of over 4,300 digits.
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
    """Copy configuration values without the list items that are None, which overrides have removed."""
    if isinstance(values, dict):
        return {key: _without_nulls(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_without_nulls(value) for value in values if value is not None]
    return values


MODEL, SNAPSHOTS = "model", "snapshots"  # folders in that of a run: the best model, and the kept ones

MAY_BE_ZERO = {"may_be_zero": True}  # for numbers; all others must be positive


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings that all training stages share; `updates` is the length of the training.

    A new key needs a default, because the stored configurations of older runs lack it.
    """

    out: str  # the folder of the run
    seed: int = field(metadata=MAY_BE_ZERO)
    updates: int
    warmup_updates: int = field(metadata=MAY_BE_ZERO)
    learning_rate: float  # at the end of the warm-up
    warmup_start: float = field(metadata=MAY_BE_ZERO)  # learning rate of the first update
    weight_decay: float = field(metadata=MAY_BE_ZERO)
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    clip_norm: float  # gradients are scaled down to this norm
    evaluate_every: int  # updates between evaluations; each evaluation saves the state
    # Of matrix products, over float32 weights; fp16 needs loss scaling, which is then done.
    precision: Literal["fp32", "bf16", "fp16"]
    # updates in a row that may have no finite gradient
    max_skipped: int = field(default=10, metadata=MAY_BE_ZERO)
    # Whether the backward pass computes the encoder's layers again: less memory, a third more arithmetic.
    gradient_checkpointing: bool = False
    # Whether torch.compile compiles the encoder's layers; pretraining on a GPU always compiles them.
    compile: bool = False
    tensorboard: bool = False  # whether to write the log for TensorBoard, too
    # Updates between snapshots: model folders that are kept in `snapshots`; 0: none are kept.
    snapshot_every: int = field(default=0, metadata=MAY_BE_ZERO)

    def __post_init__(self) -> None:
        problems = []
        for key in fields(self):
            value = getattr(self, key.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if value < 0 or not (value or "may_be_zero" in key.metadata):
                problems.append(f"{key.name} must be positive")
        for name in ("adam_beta1", "adam_beta2"):
            if not getattr(self, name) < 1:
                problems.append(f"{name} must be below 1")
        if not 0 <= self.warmup_updates <= self.updates:
            problems.append("warmup_updates must be between 0 and updates")
        if self.evaluate_every > 0 and self.snapshot_every % self.evaluate_every:
            problems.append("snapshot_every must be a multiple of evaluate_every")
        if problems:
            raise InputError("; ".join(problems))

    def takes_snapshot(self, update: int) -> bool:
        """Return whether the model is kept after an update, counted from 1; that of the last update always
        is.
        """
        if not self.snapshot_every:
            return False
        return update % self.snapshot_every == 0 or update == self.updates
