"""Configuration of the encoder (`config.json`) and of the meaning head (in `simllm.json`)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io.reading import build, read_json

# Keys in config.json that transformers adds; the encoder does not need them.
_IGNORED_KEYS = {
    "architectures",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "tie_word_embeddings",
    "_name_or_path",
}


# The largest values; files from elsewhere may claim any size. Encoders in use stay far below them.
_LARGEST = {
    "vocab_size": 2**21,
    "hidden_size": 2**14,
    "num_hidden_layers": 256,
    "num_attention_heads": 2**14,
    "intermediate_size": 2**16,
    "max_position_embeddings": 2**17,
    # `RelativeBias.bucket` divides by a quarter of the buckets, and by the logarithm of 512 / buckets.
    "relative_attention_num_buckets": 511,
    "initializer_range": 1,
    "layer_norm_eps": 1,
}
_SPECIAL_TOKENS = 5  # as in simllm.model.tokenizer, which is slow to import


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the encoder, with the names of transformers' `MPNetConfig`.

    The default values are those of the base model in the SIMLLM paper. `max_position_embeddings` is the
    length of the longest input (in tokens) plus two, because MPNet does not use the first two rows of its
    table.
    """

    vocab_size: int = 40_000
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 514
    relative_attention_num_buckets: int = 32
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    hidden_act: str = "gelu"
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    bos_token_id: int = 0
    pad_token_id: int = 1
    eos_token_id: int = 2

    def __post_init__(self) -> None:
        # All problems are reported at once, so that a wrong file needs one correction only.
        problems = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_prob"):
                if not 0 <= value < 1:
                    problems.append(f"{field.name} must be from 0 to below 1")
            elif (largest := _LARGEST.get(field.name)) and not 0 < value <= largest:
                problems.append(f"{field.name} must be positive and at most {largest:,}")
        if not problems and self.hidden_size % self.num_attention_heads:
            problems.append(
                f"hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.relative_attention_num_buckets < 4:
            problems.append("relative_attention_num_buckets must be at least 4")
        if self.max_position_embeddings < 5:
            problems.append("max_position_embeddings must be at least 5, for a text of one token")
        if self.vocab_size <= _SPECIAL_TOKENS:
            problems.append(f"vocab_size must be more than the {_SPECIAL_TOKENS} special tokens")
        if self.hidden_act != "gelu":
            problems.append(f"hidden_act {self.hidden_act!r}: only 'gelu' (the exact one) is known")
        if (self.bos_token_id, self.pad_token_id, self.eos_token_id) != (0, 1, 2):
            problems.append("bos_token_id, pad_token_id, eos_token_id must be 0, 1, 2")
        if problems:
            raise InputError("; ".join(problems))

    @property
    def max_length(self) -> int:
        """Largest number of tokens in one input, special tokens included."""
        return self.max_position_embeddings - 2

    @classmethod
    def load(cls, file: Path) -> ModelConfig:
        """Load the `config.json` of an MPNet model; unknown keys are errors."""
        values = read_json(file)
        if values.pop("model_type", None) != "mpnet":
            raise InputError(f"{file}: model_type is not 'mpnet'")
        return build(cls, {k: v for k, v in values.items() if k not in _IGNORED_KEYS}, str(file))

    def save(self, file: Path) -> None:
        """Write a `config.json`, which transformers reads as an MPNet model."""
        head = {"model_type": "mpnet", "architectures": ["MPNetModel"], "dtype": "float32"}
        file.write_text(json.dumps(head | asdict(self), indent=2) + "\n")


@dataclass(frozen=True)
class HeadConfig:
    """Shape of the meaning head.

    Attributes:
        width: Number of features for each token, W.
        layers: Number of transformer layers in the head.
        heads: Number of attention heads in each layer; `width` is a multiple of this number.
        encoder_layers: Number N of last encoder layers that the head reads. The last layer alone says less
            about the order of the words, because the mean of its states was trained as the text embedding.
        graded: Whether the head has a second output, the similarity as people grade it.
    """

    width: int = 192
    layers: int = 2
    heads: int = 4
    encoder_layers: int = 1
    graded: bool = False

    def __post_init__(self) -> None:
        if min(self.width, self.layers, self.heads, self.encoder_layers) < 1:
            raise InputError("meaning head: width, layers, heads and encoder_layers must be positive")
        if self.width > 2**13 or self.layers > 64:
            raise InputError("meaning head: width must be at most 8,192, and layers at most 64")
        if self.width % self.heads:
            raise InputError("meaning head: width must be a multiple of heads")


@dataclass(frozen=True)
class ScoreScale:
    """The map from scores to percentiles, valid only for the pooling and similarity beside it.

    Attributes:
        random: Scores of random text pairs at evenly spaced percentiles from 0 to 100. For example,
            (0.1, 0.3, 0.9) are the scores at the percentiles 0, 50 and 100.
        fitted_on: Description of the random text pairs.
    """

    random: tuple[float, ...]
    fitted_on: str

    def __post_init__(self) -> None:
        if len(self.random) < 2 or np.any(np.diff(self.random) < 0):
            raise InputError("calibration: random must be two or more values that do not decrease")

    def percentile(self, scores: Floats) -> Floats:
        """Map (n,) scores to the percentage, 0 to 100, of random text pairs that score lower."""
        return np.interp(scores, self.random, np.linspace(0, 100, len(self.random)))
