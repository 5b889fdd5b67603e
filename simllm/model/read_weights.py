"""Reading of the encoder's weights in a model folder.

The weights are in one file, or in several files that an index file lists.
"""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from simllm.errors import InputError
from simllm.io.read_json_object import read_json

SINGLE_FILE, SHARD_INDEX = "model.safetensors", "model.safetensors.index.json"


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


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all weights in a model folder.

    Returns:
        A dict from names to weights. The names are those in the files, which are transformers' names.

    Raises:
        InputError: A file is missing or damaged.
    """
    stored: dict[str, Tensor] = {}
    for file in weight_files(folder):
        try:
            stored |= load_file(file)
        except (SafetensorError, OSError, json.JSONDecodeError) as error:
            raise InputError(f"{file}: damaged ({error})") from None
    return stored
