"""Reads the weights of a model folder, in one file or in shards, under transformers' names."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from simllm.errors import InputError
from simllm.io.strict import read_json

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def files(folder: Path) -> list[Path]:
    """The files that hold the weights, in order; raise InputError where one is missing."""
    names = {WHOLE}
    if not (folder / WHOLE).is_file() and (folder / INDEX).is_file():
        shards = read_json(folder / INDEX).get("weight_map")
        if not isinstance(shards, dict) or not all(Path(str(s)).name == s for s in shards.values()):
            raise InputError(f'{folder / INDEX}: expected file names under "weight_map"')
        names = set(shards.values())
    for name in sorted(names):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; expected a model folder")
    return [folder / name for name in sorted(names)]


def read(folder: Path) -> dict[str, Tensor]:
    """Read all weights as they are stored; raise InputError for a damaged file."""
    stored: dict[str, Tensor] = {}
    for file in files(folder):
        try:
            stored |= load_file(file)
        except (SafetensorError, OSError, json.JSONDecodeError) as error:
            raise InputError(f"{file}: damaged ({error})") from None
    return stored
