"""Place of the model folder that comes with simllm."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize, safe_open

from simllm.array_types import AnyFloats, Floats, Floats32
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.packages import default_model as default_model
from simllm.io.packages import require_torch_extra
from simllm.io.reading import build, read_json, shown
from simllm.model.config import HeadConfig, ModelConfig, ScoreScale, Shape
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer

if TYPE_CHECKING:  # scoring needs no torch
    import torch

    from simllm.model.network import Encoder, MeaningHead


def other_libraries_files(config: ModelConfig, pooling: str) -> dict[str, Any]:
    """Return the contents of the settings files, as JSON values, by their paths in the model folder."""
    bos, pad, eos, unk, mask = SPECIAL_TOKENS
    module = "sentence_transformers.models."
    return {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config.max_length,
            # A special token that is written out in a text is ordinary text, as in `Tokenizer`.
            "split_special_tokens": True,
            "bos_token": bos,
            "cls_token": bos,
            "eos_token": eos,
            "sep_token": eos,
            "pad_token": pad,
            "unk_token": unk,
            "mask_token": mask,
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": module + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": module + "Pooling"},
        ],
        # tokenizer.json converts to lower case itself.
        "sentence_bert_config.json": {"max_seq_length": config.max_length, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": config.hidden_size,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
            "pooling_mode_max_tokens": pooling == "max",
        },
    }


# Parts of the names of `Encoder` parameters, and the corresponding parts of the names in transformers.
_TRANSFORMERS_NAMES = {
    "embeddings.token.": "embeddings.word_embeddings.",
    "embeddings.position.": "embeddings.position_embeddings.",
    "embeddings.norm.": "embeddings.LayerNorm.",
    "relative_bias.table.": "encoder.relative_attention_bias.",
    "layers.": "encoder.layer.",
    ".attention.query.": ".attention.attn.q.",
    ".attention.key.": ".attention.attn.k.",
    ".attention.value.": ".attention.attn.v.",
    ".attention.output.": ".attention.attn.o.",
    ".attention_norm.": ".attention.LayerNorm.",
    ".up.": ".intermediate.dense.",
    ".down.": ".output.dense.",
}

# Beginnings of the names of weights that transformers may add; the encoder does not use them.
_IGNORED_WEIGHTS = ("pooler.", "lm_head.", "embeddings.position_ids")


def transformers_name(name: str) -> str:
    """Translate a parameter's name in `Encoder` to its name in `MPNetModel` of the library transformers."""
    # Not in the table, because ".norm." is also a part of the embeddings' norm.
    if name.startswith("layers.") and name.split(".")[2] == "norm":
        name = name.replace(".norm.", ".output.LayerNorm.")
    for ours, theirs in _TRANSFORMERS_NAMES.items():
        name = name.replace(ours, theirs)
    return name


SINGLE_FILE, SHARD_INDEX = "model.safetensors", "model.safetensors.index.json"
# Integers are not here: without the scales of their library, they mean other weights.
_TYPES = {"F16", "BF16", "F32", "F64"}
_DAMAGED = (SafetensorError, OSError, ValueError, MemoryError, RuntimeError)


def weight_files(folder: Path) -> list[Path]:
    """List a model folder's weight files, sorted; raise InputError if one is missing."""
    names = {SINGLE_FILE}
    if not (folder / SINGLE_FILE).is_file() and (folder / SHARD_INDEX).is_file():
        shards = read_json(folder / SHARD_INDEX).get("weight_map")
        # Plain names only, because a path could lead out of the folder.
        if not isinstance(shards, dict) or not all(Path(str(s)).name == s for s in shards.values()):
            raise InputError(f'{folder / SHARD_INDEX}: expected file names under "weight_map"')
        names = set(shards.values())
    for name in sorted(names):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; expected a model folder")
    return [folder / name for name in sorted(names)]


@dataclass(frozen=True)
class StoredWeight:
    """A weight as the header of its file describes it; the values are not read yet."""

    file: Path
    name: str
    kind: str  # such as "F16"
    shape: Shape

    def read(self) -> Floats32:
        """Read the values as float32; raise InputError if they are not finite."""
        try:
            values = self._read_bfloat16() if self.kind == "BF16" else self._read()
        except _DAMAGED as error:
            raise InputError(f"{self.file}: damaged ({error})") from None
        if not np.isfinite(values).all():
            raise InputError(f"{self.file}: {self.name} holds values that are not finite")
        return values

    def _read(self) -> Floats32:
        with safe_open(self.file, "np") as stored:
            return stored.get_tensor(self.name).astype(np.float32)  # a copy: the file may change on disk

    def _read_bfloat16(self) -> Floats32:
        """Read bfloat16, which NumPy does not have: its bits are the upper half of those of float32."""
        for name, stored in deserialize(self.file.read_bytes()):
            if name == self.name:
                bits = np.frombuffer(stored["data"], np.uint16).astype(np.uint32) << 16
                return bits.view(np.float32).reshape(self.shape)
        raise SafetensorError(f"no {self.name}")


def read_headers(files: Iterable[Path]) -> dict[str, StoredWeight]:
    """Read the headers of safetensors files: the weights by their names."""
    weights: dict[str, StoredWeight] = {}
    for file in files:
        try:
            with safe_open(file, "np") as stored:
                for name in stored.keys():  # noqa: SIM118 (not a dict)
                    part = stored.get_slice(name)
                    weights[name] = StoredWeight(file, name, part.get_dtype(), tuple(part.get_shape()))
        except FileNotFoundError:
            raise InputError(f"{file}: no such file") from None
        except _DAMAGED as error:
            raise InputError(f"{file}: damaged ({error})") from None
    return weights


def read_weights(
    stored: Mapping[str, StoredWeight],
    shapes: Mapping[str, Shape],
    where: str,
    stored_name: Callable[[str], str] = str,
    ignored: tuple[str, ...] = (),
) -> dict[str, Floats32]:
    """Read the weights of these names and shapes; raise InputError if they do not fit.

    `stored_name` turns the name of a weight into that in the file. `ignored` are beginnings of the names of
    weights that are not needed. `where` begins the error messages.
    """
    needed = {stored_name(name): shape for name, shape in shapes.items()}
    unknown = stored.keys() - needed.keys()
    for name in sorted(unknown):
        if not name.startswith(ignored):
            raise InputError(f"{where}: weight {shown(name)} has no place in the model of config.json")
    check_shapes(stored, needed, where)
    size = sum(map(math.prod, needed.values()))
    if sum(math.prod(stored[name].shape) for name in unknown) > 2 * size:  # they are hashed all the same
        raise InputError(f"{where}: the weights that the model does not use are larger than the model")
    return {name: stored[stored_name(name)].read() for name in shapes}


def check_shapes(stored: Mapping[str, StoredWeight], shapes: Mapping[str, Shape], where: str) -> None:
    """Check that floating-point weights of these names and shapes are stored, and fit into memory."""
    for name, shape in shapes.items():
        if name not in stored:
            raise InputError(f"{where}: no weight {name}")
        if stored[name].shape != shape:
            raise InputError(f"{where}: {name} has shape {stored[name].shape}, expected {shape}")
        if stored[name].kind not in _TYPES:
            kinds = ", ".join(sorted(_TYPES))
            raise InputError(f"{where}: {name} is of type {stored[name].kind}; expected one of {kinds}")
    # Checked here, since the system may kill a process that asks for too much memory while it reads. Windows,
    # which does not tell the memory here, refuses it without a kill.
    if not hasattr(os, "sysconf"):
        return
    needed = 4 * sum(map(math.prod, shapes.values()))
    if needed > (memory := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")):
        raise InputError(f"{where}: its weights need {needed:,} bytes of memory; this machine has {memory:,}")


def update_hash(digest: hashlib._Hash, files: Iterable[Path]) -> None:
    """Add the content of files to a hash, in constant memory."""
    for file in files:
        with file.open("rb") as data:
            while block := data.read(2**20):
                digest.update(block)


BLOCK = 32  # weights that have the same scale


def to_blocks(values: Floats32, columns: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Round weights of any shape to (n, 32, columns) integers from -127 to 127 and (n, 1, columns) scales.

    The weights are read row by row; their number is n * 32 * `columns`. If `columns` is 1, a block is 32
    consecutive weights in a row. If it is the number of columns of the matrix, a block is 32 in a column.
    """
    blocks = values.reshape(-1, BLOCK, columns)
    scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    # A block of zeros must not divide by zero.
    scales = np.maximum(scales, np.finfo(np.float16).tiny)
    return np.rint(blocks / scales).clip(-127, 127).astype(np.int8), scales


def are_blocks(values: Floats32, columns: int) -> bool:
    """Return whether `to_blocks` would leave weights unchanged, within the precision of float16.

    The result is False if the number of weights is not a multiple of 32 * `columns`.
    """
    if values.size % (BLOCK * columns):
        return False
    numbers, scales = to_blocks(values, columns)
    rounded = (numbers * scales.astype(np.float32)).reshape(values.shape)
    # A weight and its scale are each rounded to float16, with a relative error of at most 2**-11.
    return bool((np.abs(rounded - values) <= 2**-9 * np.abs(values)).all())


CONFIG, TOKENIZER, INFO = "config.json", "tokenizer.json", "simllm.json"
HEAD = "meaning_head.safetensors"
CONTENT = "a model"  # of the folder, for its marker
_STEEPEST = 1_000_000  # larger slopes and intercepts overflow float32 on their way to a probability


@dataclass(frozen=True)
class MeaningInfo:
    """Shape and calibration of the meaning head, as stored in `simllm.json`.

    The head predicts whether two texts have the same meaning. Its output is a logit. The calibrated
    probability is sigmoid(slope * logit + intercept - penalty * distance) (Platt, 1999). The distance is how
    far the cosine of the embeddings is below .4; it is 0 for a higher cosine. The head learned mostly from
    similar texts, and alone would call some unrelated texts the same.

    Attributes:
        fitted_on: Description of the text pairs to which the numbers were fitted; "" if not fitted.
    """

    head: HeadConfig
    slope: float = 1.0
    intercept: float = 0.0
    fitted_on: str = ""
    penalty: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.slope <= _STEEPEST or not abs(self.intercept) <= _STEEPEST:
            raise InputError(
                f"slope must be above 0 (or high logits mean different texts) and at most {_STEEPEST:,}, "
                f"and intercept between -{_STEEPEST:,} and {_STEEPEST:,}"
            )
        if not 0 <= self.penalty <= _STEEPEST:
            raise InputError(f"penalty must be between 0 and {_STEEPEST:,}")

    def probabilities(self, logits: Floats, cosines: Floats) -> Floats:
        """Convert (n,) logits, and the (n,) cosines of the embeddings, to calibrated probabilities."""
        x = self.slope * logits + self.intercept - self.penalty * distance(cosines)
        # 1 / (1 + exp(-x)) would overflow for very negative x.
        return np.exp(-np.logaddexp(0.0, -x))


def shift_prior(probabilities: AnyFloats, prior: float, calibrated: float = 0.5) -> Floats:
    """Convert (n,) probabilities from the share of positive labels that they were calibrated on to another.

    The logit of a probability rises by logit(prior) - logit(calibrated) (Saerens et al., "Adjusting the
    outputs of a classifier to new a priori probabilities", 2002). Both shares are between 0 and 1.
    """
    positive = probabilities * (prior * (1 - calibrated))
    negative = (1 - probabilities) * ((1 - prior) * calibrated)
    return np.asarray(positive / (positive + negative), np.float64)


SIMILAR = 0.4  # lowest score of similar texts


def distance(cosines: Floats) -> Floats:
    """Compute by how much each of (n,) cosines is below that of similar texts."""
    return (SIMILAR - cosines).clip(0)


@dataclass(frozen=True)
class ModelInfo:
    """The content of `simllm.json`, a file in the model folder.

    Attributes:
        pooling: The name of the pooling that the model was trained with.
        similarity: The name of the similarity that the model was trained with.
        provenance: Facts about the training, such as configuration, date and hardware.
        calibration: The map from scores to percentiles; None if there is none.
        meaning: Shape and calibration of the meaning head; None if the model has no such head.
    """

    pooling: str = "mean"
    similarity: str = "cosine"
    provenance: dict[str, Any] = field(default_factory=dict)
    calibration: ScoreScale | None = None
    meaning: MeaningInfo | None = None


@dataclass(frozen=True)
class SavedModel:
    """A model folder, loaded into memory.

    Attributes:
        weights: The encoder's weights, by their names in `network.Encoder`.
        hash: 12 hex digits that identify the encoder's configuration and weights.
        head_weights: Those of the meaning head; None if there is no head.
        head_hash: 12 hex digits that identify the weights and calibration of the head; empty without a head.
    """

    config: ModelConfig
    weights: Mapping[str, Floats32]
    tokenizer: Tokenizer
    info: ModelInfo
    hash: str
    head_weights: Mapping[str, Floats32] | None = None
    head_hash: str = ""

    @property
    def head_config(self) -> HeadConfig | None:
        """Shape of the meaning head; None if there is no head."""
        return self.info.meaning.head if self.info.meaning and self.head_weights else None

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder as a network of torch, on the CPU and in evaluation mode."""
        network = _torch_networks()
        return network.with_weights(self.weights, network.Encoder, self.config).eval()

    @cached_property
    def head(self) -> MeaningHead | None:
        """The meaning head as a network of torch, on the CPU and in evaluation mode."""
        shape = self.head_config
        if not (shape and self.head_weights):
            return None
        network = _torch_networks()
        return network.with_weights(self.head_weights, network.MeaningHead, shape, self.config).eval()


@cache
def _torch_networks() -> ModuleType:
    with require_torch_extra():
        from simllm.model import network
    return network


def load(folder: str | os.PathLike[str]) -> SavedModel:
    """Load a model from its folder.

    Args:
        folder: The path of the model folder.

    Returns:
        The weights (float32), the tokenizer and the settings.

    Raises:
        InputError: A file is missing, damaged, or does not fit the other files.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such model folder")
    for name in (CONFIG, TOKENIZER):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; expected a model folder")
    stored = weight_files(folder)
    config = ModelConfig.load(folder / CONFIG)
    info = ModelInfo()
    if (folder / INFO).is_file():
        info = _read_info(folder / INFO)
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    if tokenizer.vocab_size != config.vocab_size:
        raise InputError(
            f"{folder}: {TOKENIZER} has {tokenizer.vocab_size} tokens, {CONFIG} says {config.vocab_size}"
        )
    headers = read_headers(stored)
    weights = read_weights(headers, config.weight_shapes, str(folder), transformers_name, _IGNORED_WEIGHTS)
    digest = hashlib.sha256()
    update_hash(digest, [folder / CONFIG, *stored])
    head, head_hash = _read_head(folder, info, config)
    return SavedModel(config, weights, tokenizer, info, digest.hexdigest()[:12], head, head_hash)


def _read_info(file: Path) -> ModelInfo:
    """Read a `simllm.json`, without the map to human ratings that version 0.2 stored."""
    values = read_json(file)
    if isinstance(scale := values.get("calibration"), dict):
        for key in ("scores", "ratings", "low", "high"):
            scale.pop(key, None)
    return build(ModelInfo, values, str(file))


def _read_head(
    folder: Path, info: ModelInfo, config: ModelConfig
) -> tuple[Mapping[str, Floats32] | None, str]:
    """Read the meaning head, and hash its weights and calibration; (None, "") if the model has none."""
    if info.meaning is None:
        return None, ""
    file = folder / HEAD
    try:
        shapes = info.meaning.head.weight_shapes(config)
    except InputError as error:
        raise InputError(f"{folder / INFO}: {error}") from None
    if not file.is_file():
        raise InputError(f"{file}: no such file; {INFO} describes a meaning head")
    try:
        weights = read_weights(read_headers([file]), shapes, str(file))
    except InputError as error:
        raise InputError(f"{error}; not the meaning head that {INFO} describes") from None
    described = asdict(info.meaning)
    for name in ("encoder_layers", "graded"):  # the weights tell them, and older folders do not have them
        del described["head"][name]
    if not info.meaning.penalty:
        del described["penalty"]  # older folders have none
    digest = hashlib.sha256()
    update_hash(digest, [file])
    digest.update(json.dumps(described).encode())
    return weights, digest.hexdigest()[:12]


def info_json(info: ModelInfo) -> str:
    """Return the content of `simllm.json`."""
    # Without indentation, because the provenance has a level for each stage of training.
    return json.dumps(asdict(info), indent=0) + "\n"


def save(
    folder: Path,
    encoder: Encoder,
    tokenizer: Tokenizer,
    info: ModelInfo,
    card: str,
    dtype: torch.dtype | None = None,
    head: MeaningHead | None = None,
    keep_edits: bool = True,
) -> None:
    """Save a model folder; an interruption leaves the old folder or the new one, never a mixture.

    Args:
        folder: The path of the model folder; an existing folder is replaced if simllm wrote it.
        encoder: The encoder.
        tokenizer: The tokenizer.
        info: The content of `simllm.json`. Its `meaning` describes `head`, and is not saved without a head.
        card: The model card, in Markdown.
        dtype: The number type of the stored weights; by default float32.
        head: The meaning head, or None.
        keep_edits: True: if the user changes a file in the folder, a later save raises an error. False: a
            later save overwrites such changes. A training run, which saves its model repeatedly, uses False.

    Raises:
        InputError: The folder cannot be written, or may not be replaced: simllm did not write it, or it was
            saved with `keep_edits` and the user then changed a file in it.
    """
    import torch
    from safetensors.torch import save_file

    dtype = dtype or torch.float32
    # Readers take a described head for a missing file.
    if head is None:
        info = replace(info, meaning=None)
    state = {
        transformers_name(name): tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in encoder.state_dict().items()
    }
    with OutputFolder(folder, CONTENT).replacing(keep_edits=keep_edits) as partial:
        encoder.config.save(partial / CONFIG)
        save_file(state, partial / SINGLE_FILE, metadata={"format": "pt"})
        # save_file makes a file that other users cannot read.
        shutil.copymode(partial / CONFIG, partial / SINGLE_FILE)
        if head:
            weights_of_head = {
                name: tensor.detach().to("cpu", dtype) for name, tensor in head.state_dict().items()
            }
            save_file(weights_of_head, partial / HEAD)
            shutil.copymode(partial / CONFIG, partial / HEAD)
        output_file.write(partial / TOKENIZER, tokenizer.backend.to_str())
        output_file.write(partial / "README.md", card)
        output_file.write(partial / INFO, info_json(info))
        for name, values in other_libraries_files(encoder.config, info.pooling).items():
            (partial / name).parent.mkdir(exist_ok=True)
            output_file.write(partial / name, json.dumps(values, indent=1) + "\n")
