"""The model folder, which simllm, transformers and sentence-transformers can load.

config.json               shape of the encoder (transformers reads it as an MPNet model)
model.safetensors         encoder weights under transformers' names, in one file or in several with an index
tokenizer.json            vocabulary and the rules that clean texts
simllm.json               pooling, similarity, facts about the training, map from scores to human ratings
meaning_head.safetensors  weights of the meaning head (optional; the other libraries ignore the file)
README.md                 model card
tokenizer_config.json, modules.json, …   settings for the other two libraries

The meaning head is a network that predicts whether two texts have the same meaning.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.read_json_object import read_json
from simllm.io.strict_dataclass_loading import build
from simllm.model.encoder import Encoder
from simllm.model.meaning_head import MeaningHead
from simllm.model.model_config import HeadConfig, ModelConfig
from simllm.model.percentiles_and_expected_ratings import ScoreScale
from simllm.model.read_weights import SINGLE_FILE, fill, on_meta, read_headers, update_hash, weight_files
from simllm.model.sentence_transformers_files import other_libraries_files
from simllm.model.tokenizer import Tokenizer
from simllm.model.transformers_weight_names import read_encoder_weights, transformers_name

CONFIG, TOKENIZER, INFO = "config.json", "tokenizer.json", "simllm.json"
HEAD = "meaning_head.safetensors"
CONTENT = "a model"  # of the folder, for its marker
_STEEPEST = 1_000_000  # larger slopes and intercepts overflow float32 on their way to a probability


@dataclass(frozen=True)
class MeaningInfo:
    """Shape and calibration of the meaning head, as stored in `simllm.json`.

    The meaning head predicts whether two texts have the same meaning. Its output is a logit. The
    calibrated probability is sigmoid(slope * logit + intercept) (Platt, 1999).

    Attributes:
        head: The shape of the meaning head.
        slope: The slope in the formula above.
        intercept: The intercept in the formula above.
        fitted_on: Description of the text pairs to which slope and intercept were fitted; "" if not fitted.
    """

    head: HeadConfig
    slope: float = 1.0
    intercept: float = 0.0
    fitted_on: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.slope <= _STEEPEST or not abs(self.intercept) <= _STEEPEST:
            raise InputError(
                f"slope must be above 0 (or high logits mean different texts) and at most {_STEEPEST:,}, "
                f"and intercept between -{_STEEPEST:,} and {_STEEPEST:,}"
            )


@dataclass(frozen=True)
class ModelInfo:
    """The content of `simllm.json`, a file in the model folder.

    Attributes:
        pooling: The name of the pooling that the model was trained with, such as "mean".
        similarity: The name of the similarity that the model was trained with, such as "cosine".
        provenance: Facts about the training, such as configuration, date and hardware.
        calibration: The map from scores to percentiles and human ratings; None if there is none.
        meaning: The shape of the meaning head (the network that predicts whether two texts have the same
            meaning), and the map from its output to a probability; None if the model has no such head.
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
        encoder: The network that turns token ids into hidden states.
        tokenizer: The tokenizer, which also cleans texts.
        info: The content of `simllm.json`, such as pooling, similarity and facts about the training.
        hash: 12 hex digits that identify the encoder's configuration and weights.
        head: The network that predicts whether two texts have the same meaning; None if there is none.
        head_hash: 12 hex digits that identify the weights and calibration of `head`; empty without a head.
    """

    encoder: Encoder
    tokenizer: Tokenizer
    info: ModelInfo
    hash: str
    head: MeaningHead | None = None
    head_hash: str = ""


def load(folder: str | os.PathLike[str]) -> SavedModel:
    """Load a model from its folder.

    Args:
        folder: The path of the model folder.

    Returns:
        The encoder (float32, on the CPU, in evaluation mode), the tokenizer and the settings. If the folder
        has a meaning head, the result also has it: a network that predicts whether two texts have the same
        meaning.

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
        info = build(ModelInfo, read_json(folder / INFO), str(folder / INFO))
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    if tokenizer.vocab_size != config.vocab_size:
        raise InputError(
            f"{folder}: {TOKENIZER} has {tokenizer.vocab_size} tokens, {CONFIG} says {config.vocab_size}"
        )
    encoder = on_meta(lambda: Encoder(config))
    read_encoder_weights(folder, encoder)
    digest = hashlib.sha256()
    update_hash(digest, [folder / CONFIG, *stored])
    head, head_hash = _load_head(folder, info, config)
    return SavedModel(encoder.eval(), tokenizer, info, digest.hexdigest()[:12], head, head_hash)


def _load_head(folder: Path, info: ModelInfo, config: ModelConfig) -> tuple[MeaningHead | None, str]:
    """Load the meaning head: the network that predicts whether two texts have the same meaning.

    Args:
        folder: The model folder.
        info: The content of the folder's `simllm.json`.
        config: The shape of the folder's encoder.

    Returns:
        The head, and a hash of its weights and calibration; (None, "") if the model has no head.

    Raises:
        InputError: The weights are missing, damaged, or do not fit the shape in `info`.
    """
    if info.meaning is None:
        return None, ""
    file = folder / HEAD
    shape = info.meaning.head
    try:
        head = on_meta(lambda: MeaningHead(shape, config))
    except InputError as error:
        raise InputError(f"{folder / INFO}: {error}") from None
    if not file.is_file():
        raise InputError(f"{file}: no such file; {INFO} describes a meaning head")
    try:
        fill(head, read_headers([file]), str(file))
    except InputError as error:
        raise InputError(f"{error}; not the meaning head that {INFO} describes") from None
    described = asdict(info.meaning)
    del described["head"]["encoder_layers"]  # the weights tell it, and older folders do not have it
    digest = hashlib.sha256()
    update_hash(digest, [file])
    digest.update(json.dumps(described).encode())
    return head.eval(), digest.hexdigest()[:12]


def info_json(info: ModelInfo) -> str:
    """Return the content of `simllm.json`, without indentation: the provenance has a level for each stage."""
    return json.dumps(asdict(info), indent=0) + "\n"


def save(
    folder: Path,
    encoder: Encoder,
    tokenizer: Tokenizer,
    info: ModelInfo,
    card: str,
    dtype: torch.dtype = torch.float32,
    head: MeaningHead | None = None,
    keep_edits: bool = True,
) -> None:
    """Save a model folder; an interruption leaves the old folder or the new one, never a mixture.

    Args:
        folder: The path of the model folder; an existing folder is replaced if simllm wrote it.
        encoder: The encoder.
        tokenizer: The tokenizer.
        info: The content of `simllm.json`.
        card: The model card, in Markdown.
        dtype: The number type of the stored weights.
        head: The network that predicts whether two texts have the same meaning. `info.meaning` must describe
            this network. None if the model has no such network; then `info.meaning` is not saved.
        keep_edits: True: if the user changes a file in the folder, a later save raises an error. False: a
            later save overwrites such changes. A training run, which saves its model repeatedly, uses False.

    Raises:
        InputError: The folder cannot be written, or may not be replaced: simllm did not write it, or it was
            saved with `keep_edits` and the user then changed a file in it.
    """
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
