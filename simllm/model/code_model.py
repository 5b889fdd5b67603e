"""The model that reads code: an encoder of code beside that of summaries, and a head that reads both.

It belongs to one encoder of summaries, whose token embeddings it shares. The summaries are embedded by that
encoder, which stays as it is; a linear map takes these embeddings to those of code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simllm.array_types import Floats, Floats32
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.packages import find_packaged
from simllm.io.reading import build, read_json
from simllm.model.saved_model import (
    SINGLE_FILE,
    MeaningInfo,
    SavedModel,
    read_headers,
    read_weights,
    update_hash,
)

if TYPE_CHECKING:  # scoring needs no torch
    from torch import Tensor, nn

    from simllm.model.network import Encoder, MeaningHead

INFO = "code.json"
CONTENT = "a model that reads code"  # of the folder, for its marker
_SHARED, _HEAD, _MAP = "embeddings.", "head.", "summary_map."  # beginnings of the names of weights


@dataclass(frozen=True)
class CodeInfo:
    """Settings of a model that reads code, as stored in `code.json`.

    Attributes:
        summaries: The hash of the model whose encoder embeds the summaries.
        fits: Shape and calibration of the head, whose probability says whether a summary fits the code.
        both: The weights, with sum 1, of the score against the reference, the cosine of code and summary, and
            `fits` in the score against both. The score against the code is the weighted mean of the last two.
        both_fitted_on: Description of what `both` was fitted to; "" if not fitted.
        unsupported: The code does not support a statement whose `fits` is lower: so are 10% of the statements
            of true summaries in the functions on which it was measured.
    """

    summaries: str
    fits: MeaningInfo
    both: tuple[float, ...] = (0.5, 0.5, 0.0)
    both_fitted_on: str = ""
    unsupported: float = 0.3
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.both) != 3 or min(self.both) < 0 or self.both[0] == 1 or abs(sum(self.both) - 1) > 1e-6:
            raise InputError(f"both must be three weights with sum 1, the first below 1, not {self.both}")
        if not 0 <= self.unsupported <= 1:
            raise InputError(f"unsupported must be a probability, not {self.unsupported}")


@dataclass(frozen=True)
class CodeModel:
    """A model that reads code, loaded into memory; `hash` is 12 hex digits that identify it.

    `networks` has the encoder of code and the head; `map_weights` has the `weight` (D, D) and the `bias` (D,)
    of the map of summaries.
    """

    networks: SavedModel
    map_weights: Mapping[str, Floats32]
    info: CodeInfo
    hash: str

    @property
    def parameters(self) -> int:
        """The number of its own parameters, without the embeddings that it shares."""
        own = [each for name, each in self.networks.weights.items() if not name.startswith(_SHARED)]
        others = (*self.map_weights.values(), *(self.networks.head_weights or {}).values())
        return sum(each.size for each in (*own, *others))

    def map_summaries(self, embeddings: Floats32) -> Floats:
        """Map the (n, D) embeddings of summaries to the embeddings that code is compared with."""
        # In double precision, so that the number of rows changes no row by more than a rounding of 1e-15.
        weight, bias = (self.map_weights[name].astype(np.float64) for name in ("weight", "bias"))
        return embeddings.astype(np.float64) @ weight.T + bias

    @property
    def encoder(self) -> Encoder:
        """The encoder of code as a network of torch."""
        return self.networks.encoder

    @property
    def head(self) -> MeaningHead:
        """The head as a network of torch."""
        assert self.networks.head
        return self.networks.head

    @cached_property
    def summary_map(self) -> nn.Linear:
        """The map of summaries as a network of torch."""
        import torch
        from torch import nn

        network = nn.Linear(*self.map_weights["weight"].shape[::-1])
        network.load_state_dict({name: torch.tensor(weight) for name, weight in self.map_weights.items()})
        return network

    @property
    def own_parts(self) -> nn.ModuleDict:
        """The parts that are stored: all but the embeddings of tokens and positions, which are shared."""
        from torch import nn

        layers = {"relative_bias": self.encoder.relative_bias, "layers": self.encoder.layers}
        return nn.ModuleDict({**layers, "head": self.head, "summary_map": self.summary_map})


@dataclass(frozen=True)
class _OwnWeights:
    """The weights that are not shared, by their names in each part."""

    layers: dict[str, Floats32]
    head: dict[str, Floats32]
    summary_map: dict[str, Floats32]


def _beside(summaries: SavedModel, own: _OwnWeights, info: CodeInfo, hash: str) -> CodeModel:
    """Make a model from its own weights and the embeddings of tokens and positions, which are shared."""
    shared = {name: weight for name, weight in summaries.weights.items() if name.startswith(_SHARED)}
    settings = replace(summaries.info, meaning=info.fits)
    networks = replace(summaries, weights=shared | own.layers, info=settings, head_weights=own.head)
    return CodeModel(networks, own.summary_map, info, hash)


def start(summaries: SavedModel, info: CodeInfo, earlier: Path | None = None) -> CodeModel:
    """Make a model to train: the layers of the encoder of summaries and a random head, or an earlier model.

    The map of summaries changes nothing at the start. The earlier model may belong to another encoder of
    summaries. InputError if its shapes differ.
    """
    from simllm.model.network import MeaningHead

    if earlier:
        own = _read_own(earlier, info, summaries)
    else:
        weights, width = summaries.weights.items(), summaries.config.hidden_size
        layers = {name: weight.copy() for name, weight in weights if not name.startswith(_SHARED)}
        state = MeaningHead(info.fits.head, summaries.config).state_dict()
        head = {name: weight.numpy() for name, weight in state.items()}
        unchanged = {"weight": np.eye(width, dtype=np.float32), "bias": np.zeros(width, np.float32)}
        own = _OwnWeights(layers, head, unchanged)
    model = _beside(summaries, own, info, "")
    model.encoder.embeddings.requires_grad_(False)
    return model


def packaged() -> Path | None:
    """Return the folder of the model that comes with simllm; None if there is none."""
    try:
        return find_packaged("code_model", "checkpoints/code", "model that reads code")
    except InputError:
        return None


def load(folder: Path, summaries: SavedModel) -> CodeModel | None:
    """Load a model from its folder; None if it belongs to another encoder of summaries.

    InputError: a file is missing, damaged, or does not fit the encoder of summaries.
    """
    info = _read_info(folder)
    if info.summaries != summaries.hash:
        return None
    own = _read_own(folder, info, summaries)
    digest = hashlib.sha256()
    update_hash(digest, [folder / SINGLE_FILE])
    digest.update(json.dumps([asdict(info.fits), info.both]).encode())
    return _beside(summaries, own, info, digest.hexdigest()[:12])


def _read_info(folder: Path) -> CodeInfo:
    return build(CodeInfo, read_json(folder / INFO), str(folder / INFO))


def _read_own(folder: Path, info: CodeInfo, summaries: SavedModel) -> _OwnWeights:
    config, file, width = summaries.config, folder / SINGLE_FILE, summaries.config.hidden_size
    layers = {n: shape for n, shape in config.weight_shapes.items() if not n.startswith(_SHARED)}
    head = {f"{_HEAD}{n}": shape for n, shape in info.fits.head.weight_shapes(config).items()}
    summary_map = {f"{_MAP}weight": (width, width), f"{_MAP}bias": (width,)}
    weights = read_weights(read_headers([file]), layers | head | summary_map, str(file))
    return _OwnWeights(
        {name: weights[name] for name in layers},
        {name.removeprefix(_HEAD): weights[name] for name in head},
        {name.removeprefix(_MAP): weights[name] for name in summary_map},
    )


def save(folder: Path, model: CodeModel, info: CodeInfo, card: str) -> None:
    """Save a model in float16; an interruption leaves the old folder or the new one, never a mixture.

    `info` replaces that of the model.
    """
    save_weights(folder, model.own_parts.state_dict(), info, card)


def save_weights(folder: Path, weights: Mapping[str, Tensor], info: CodeInfo, card: str) -> None:
    """Save a model from its own weights, as `save` does."""
    import torch
    from safetensors.torch import save_file

    own = {name: tensor.detach().to("cpu", torch.float16).contiguous() for name, tensor in weights.items()}
    with OutputFolder(folder, CONTENT).replacing(keep_edits=False) as partial:
        output_file.write(partial / INFO, json.dumps(asdict(info), indent=0) + "\n")
        save_file(own, partial / SINGLE_FILE)
        (partial / SINGLE_FILE).chmod((partial / INFO).stat().st_mode)  # it is made unreadable for others
        output_file.write(partial / "README.md", card)


def read_stored(folder: Path) -> tuple[CodeInfo, dict[str, Floats32]]:
    """Read the settings and all own weights, by the names that they are stored with."""
    info = _read_info(folder)
    stored = read_headers([folder / SINGLE_FILE])
    shapes = {name: weight.shape for name, weight in stored.items()}
    return info, read_weights(stored, shapes, str(folder / SINGLE_FILE))
