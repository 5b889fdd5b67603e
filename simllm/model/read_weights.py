"""Reading of weights: safetensors files, in which a header gives each weight's name, type and shape.

Files from elsewhere may claim anything. Therefore all shapes are compared with those of the network from the
headers alone, before memory for a weight is used. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.io.read_json_object import read_json
from simllm.io.strict_dataclass_loading import shown

SINGLE_FILE, SHARD_INDEX = "model.safetensors", "model.safetensors.index.json"
# Integers are not here: without the scales of their library, they mean other weights.
_TYPES = {"F16", "BF16", "F32", "F64"}
_DAMAGED = (SafetensorError, OSError, ValueError, MemoryError, RuntimeError)

N = TypeVar("N", bound=nn.Module)


def weight_files(folder: Path) -> list[Path]:
    """Return the paths of a model folder's weight files, sorted; raise InputError if a file is missing."""
    names = {SINGLE_FILE}
    if not (folder / SINGLE_FILE).is_file() and (folder / SHARD_INDEX).is_file():
        shards = read_json(folder / SHARD_INDEX).get("weight_map")
        if not isinstance(shards, dict) or not all(Path(str(s)).name == s for s in shards.values()):
            raise InputError(f'{folder / SHARD_INDEX}: expected file names under "weight_map"')
        names = set(shards.values())
    for name in sorted(names):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; expected a model folder")
    return [folder / name for name in sorted(names)]


@dataclass(frozen=True)
class StoredWeight:
    """A weight in a safetensors file, as its header describes it; the values are not read yet."""

    file: Path
    name: str
    kind: str  # such as "F16"
    shape: tuple[int, ...]

    def read(self) -> Tensor:
        """Read the values as float32; raise InputError if they are not finite."""
        try:
            with safe_open(self.file, "pt") as stored:
                tensor = stored.get_tensor(self.name)
        except _DAMAGED as error:
            raise InputError(f"{self.file}: damaged ({error})") from None
        tensor = tensor.to(torch.float32, copy=True)  # a copy: the file may change on disk
        if not tensor.isfinite().all():
            raise InputError(f"{self.file}: {self.name} holds values that are not finite")
        return tensor


def read_headers(files: Iterable[Path]) -> dict[str, StoredWeight]:
    """Read the headers of safetensors files: the weights by their names.

    Raises:
        InputError: A file is damaged.
    """
    weights: dict[str, StoredWeight] = {}
    for file in files:
        try:
            with safe_open(file, "pt") as stored:
                for name in stored.keys():  # noqa: SIM118 (not a dict)
                    part = stored.get_slice(name)
                    weights[name] = StoredWeight(file, name, part.get_dtype(), tuple(part.get_shape()))
        except _DAMAGED as error:
            raise InputError(f"{file}: damaged ({error})") from None
    return weights


def on_meta(build: Callable[[], N]) -> N:
    """Build a network without memory for its weights; `fill` reads them."""
    with torch.device("meta"):
        return build()


def fill(
    module: nn.Module,
    stored: Mapping[str, StoredWeight],
    where: str,
    stored_name: Callable[[str], str] = str,
    ignored: tuple[str, ...] = (),
) -> None:
    """Read the weights of a network that `on_meta` built.

    Args:
        module: The network.
        stored: The weights as `read_headers` returns them.
        where: Beginning of error messages, such as the folder.
        stored_name: Function that turns the name of a parameter into the name of its stored weight.
        ignored: Beginnings of the names of stored weights that the network does not need.

    Raises:
        InputError: A weight is missing, unknown, damaged, not finite, or has another shape than its
            parameter; or the network does not fit into the memory of this machine.
    """
    names = {name: stored_name(name) for name in module.state_dict()}
    shapes = {names[name]: tuple(parameter.shape) for name, parameter in module.state_dict().items()}
    unknown = stored.keys() - shapes.keys()
    for name in sorted(unknown):
        if not name.startswith(ignored):
            raise InputError(f"{where}: weight {shown(name)} has no place in the model of config.json")
    check_shapes(stored, shapes, where)
    needed = sum(map(math.prod, shapes.values()))
    if sum(math.prod(stored[name].shape) for name in unknown) > 2 * needed:  # they are hashed all the same
        raise InputError(f"{where}: the weights that the model does not use are larger than the model")
    module.load_state_dict({name: stored[names[name]].read() for name in names}, assign=True)


def check_shapes(
    stored: Mapping[str, StoredWeight], shapes: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Check that floating-point weights of these names and shapes are stored, and fit into memory."""
    for name, shape in shapes.items():
        if name not in stored:
            raise InputError(f"{where}: no weight {name}")
        if stored[name].shape != shape:
            raise InputError(f"{where}: {name} has shape {stored[name].shape}, expected {shape}")
        if stored[name].kind not in _TYPES:
            kinds = ", ".join(sorted(_TYPES))
            raise InputError(f"{where}: {name} is of type {stored[name].kind}; expected one of {kinds}")
    needed = 4 * sum(map(math.prod, shapes.values()))
    if needed > (memory := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")):
        raise InputError(f"{where}: its weights need {needed:,} bytes of memory; this machine has {memory:,}")


def update_hash(digest: hashlib._Hash, files: Iterable[Path]) -> None:
    """Add the content of files to a hash, in constant memory."""
    for file in files:
        with file.open("rb") as data:
            while block := data.read(2**20):
                digest.update(block)
