"""Settings of a model folder: the shapes of the encoder (`config.json`) and of the meaning head
(in `simllm.json`), the pooling, the similarity, and the scale of the scores.

Nothing here needs torch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from simllm.array_types import AnyFloats, Floats, Floats32, Ints
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


Shape = tuple[int, ...]


def _linear(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    """Return the shapes of a linear layer's weights, which turn (…, inputs) into (…, outputs)."""
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str, width: int) -> dict[str, Shape]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


MAX_DISTANCE = 128  # of two positions; at larger distances, the relative position bias is the same


def distance_buckets(buckets: int) -> Ints:
    """Compute the buckets of `network.RelativeBias` for distances from -MAX_DISTANCE to MAX_DISTANCE."""
    distances = np.arange(-MAX_DISTANCE, MAX_DISTANCE + 1)
    per_sign = buckets // 2
    exact = per_sign // 2
    # In float32 as in `network.RelativeBias.bucket`: a rounding error can lead to the next bucket.
    far = np.log(np.maximum(np.abs(distances), 1).astype(np.float32) / np.float32(exact))
    far = far / np.float32(math.log(MAX_DISTANCE / exact)) * np.float32(per_sign - exact)
    near = np.abs(distances)
    near = np.where(near < exact, near, np.minimum(exact + far.astype(np.int64), per_sign - 1))
    return near + per_sign * (distances > 0)


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

    @property
    def weight_shapes(self) -> dict[str, Shape]:
        """The shapes of the encoder's weights, by their names in `network.Encoder`."""
        width = self.hidden_size
        return {
            "embeddings.token.weight": (self.vocab_size, width),
            "embeddings.position.weight": (self.max_position_embeddings, width),
            **_norm("embeddings.norm", width),
            **self.shapes_of_layers,
        }

    @property
    def shapes_of_layers(self) -> dict[str, Shape]:
        """The shapes of the relative position bias and of all layers."""
        width, inner = self.hidden_size, self.intermediate_size
        found: dict[str, Shape] = {
            "relative_bias.table.weight": (self.relative_attention_num_buckets, self.num_attention_heads)
        }
        for number in range(self.num_hidden_layers):
            layer = f"layers.{number}"
            for name in ("query", "key", "value", "output"):
                found |= _linear(f"{layer}.attention.{name}", width, width)
            found |= _norm(f"{layer}.attention_norm", width)
            found |= _linear(f"{layer}.up", width, inner) | _linear(f"{layer}.down", inner, width)
            found |= _norm(f"{layer}.norm", width)
        return found

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

    def inner(self, encoder: ModelConfig) -> ModelConfig:
        """Return the configuration of the layers in a head that reads the states of this encoder."""
        if self.encoder_layers > encoder.num_hidden_layers:
            raise InputError(
                f"meaning head: encoder_layers {self.encoder_layers} is more than the encoder's "
                f"{encoder.num_hidden_layers} layers"
            )
        return ModelConfig(
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=2 * self.width,
            max_position_embeddings=encoder.max_position_embeddings,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )

    def weight_shapes(self, encoder: ModelConfig) -> dict[str, Shape]:
        """Return the shapes of the head's weights, by their names in `network.MeaningHead`."""
        width = self.width
        shapes = {
            **self.inner(encoder).shapes_of_layers,
            **_linear("project", self.encoder_layers * encoder.hidden_size, width),
            **_linear("align", width, width),
            **_linear("compare", 4 * width + 2, width),
            **_linear("hidden", 2 * width, width),
            **_linear("logit", width, 1),
        }
        if self.graded:
            shapes |= _linear("graded", 2 * width, 1) | {"cosine_weight": (1,)}
        return shapes


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


# The pooling of the (L, D) states of one text's tokens, <s> and </s> included, into its (D,) embedding.
POOLINGS: dict[str, Callable[[Floats32], Floats32]] = {
    "cls": lambda states: states[0],
    "mean": lambda states: states.mean(0),
    "max": lambda states: states.max(0),
}


def check_pooling(name: str) -> str:
    """Return the name of a pooling; raise InputError for another name."""
    if name not in POOLINGS:
        raise InputError(f"pooling {name!r}: expected one of {', '.join(POOLINGS)}")
    return name


def cosine(a: AnyFloats, b: AnyFloats) -> Floats:
    """Compute the (n,) cosines of (n, D) vectors `a[i]` and `b[i]`; 0 if one of the two is zero.

    Equal vectors have a cosine of exactly 1, without a rounding error.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    # One root of the product, not a product of two roots: then equal vectors give exactly 1.
    norms = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    dots = (a * b).sum(1)
    return np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0).clip(-1.0, 1.0)


def inverse_euclidean(a: AnyFloats, b: AnyFloats) -> Floats:
    """Compute 1 / (1 + Euclidean distance) of (n, D) vectors `a[i]` and `b[i]`: (n,) numbers in (0, 1]."""
    return 1.0 / (1.0 + np.linalg.norm(a.astype(np.float64) - b.astype(np.float64), axis=1))


SIMILARITIES: dict[str, Callable[[AnyFloats, AnyFloats], Floats]] = {
    "cosine": cosine,
    "inverse-euclidean": inverse_euclidean,
}
