"""What a training run is made of; every key of a `configs/*.yaml` stands here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from simllm.errors import InputError
from simllm.io.strict import build
from simllm.model.config import ModelConfig

# Of a run's own keys, one that came later: at its default, the run is the same as one begun before.
ADDED = {"added": True}


@dataclass(frozen=True)
class CorpusConfig:
    """Where the comments come from."""

    sources: tuple[str, ...]  # files, folders of code, corpora, glob patterns, or `installed-python`
    exclude: tuple[str, ...] = ()  # rated files whose texts must not be trained on
    test_share: float = 0.1  # of the texts, held out
    tags: int = 0  # so many revisions of git repositories, besides the newest

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("sources must not be empty")
        if not 0 < self.test_share < 1:
            raise InputError(f"test_share must be between 0 and 1, not {self.test_share}")
        if self.tags < 0:
            raise InputError(f"tags must not be negative, but is {self.tags}")


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """What both stages of training have in common. An update is one optimizer step."""

    out: str  # the run's folder
    seed: int
    updates: int
    warmup_updates: int
    learning_rate: float  # at the end of the warm-up
    warmup_start: float  # learning rate of the first update
    weight_decay: float
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    clip_norm: float  # gradients are scaled down to this norm
    evaluate_every: int  # updates between evaluation, best model and saved state
    precision: str  # of matrix products, over float32 weights: fp32, bf16, or fp16 with loss scaling
    max_skipped: int = 10  # updates in a row that a gradient that is not finite may cost
    tensorboard: bool = False  # write the log for TensorBoard, too

    def __post_init__(self) -> None:
        problems = []
        for key in fields(self):
            value = getattr(self, key.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if value < 0 or not (value or key.name in _MAY_BE_ZERO):
                problems.append(f"{key.name} must be positive")
        for name in ("adam_beta1", "adam_beta2"):
            if not getattr(self, name) < 1:
                problems.append(f"{name} must be below 1")
        if not 0 <= self.warmup_updates <= self.updates:
            problems.append("warmup_updates must be between 0 and updates")
        if self.precision not in ("fp32", "bf16", "fp16"):
            problems.append(f"precision must be fp32, bf16 or fp16, not {self.precision!r}")
        if problems:
            raise InputError("; ".join(problems))


_MAY_BE_ZERO = {"seed", "warmup_updates", "warmup_start", "weight_decay", "max_skipped"}


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(Optimization):
    """Pretraining: permuted language modelling, or masked, to compare."""

    corpus: CorpusConfig
    model: ModelConfig
    token_vectors: str  # what they start from: random, or ppmi (counts of neighbours in the corpus)
    packing: str  # documents: each text attends to itself; blocks: of the longest input, cut anywhere
    predict_probability: float  # share of a text's tokens that is predicted
    batch_tokens: int  # tokens of text a batch, about: what a device takes at once
    accumulation: int  # batches an update, over all processes
    test_texts: int  # held-out texts that the perplexity is measured on
    # permuted: a token is predicted knowing those predicted before it; masked: knowing none of them
    objective: str = field(default="permuted", metadata=ADDED)

    def __post_init__(self) -> None:
        problems = []
        try:
            super().__post_init__()
        except InputError as error:
            problems.append(str(error))
        if not self.predict_probability < 1:
            problems.append("predict_probability must be below 1")
        if self.token_vectors not in ("random", "ppmi"):
            problems.append(f"token_vectors must be random or ppmi, not {self.token_vectors!r}")
        elif self.token_vectors == "ppmi" and self.model.hidden_size >= self.model.vocab_size:
            problems.append("token_vectors: ppmi needs a vocabulary larger than hidden_size")
        if self.objective not in ("permuted", "masked"):
            problems.append(f"objective must be permuted or masked, not {self.objective!r}")
        if self.packing not in ("documents", "blocks"):
            problems.append(f"packing must be documents or blocks, not {self.packing!r}")
        if self.batch_tokens < self.model.max_length:
            problems.append(f"batch_tokens must hold the longest input, {self.model.max_length} tokens")
        if problems:
            raise InputError("; ".join(problems))

    @property
    def update_tokens(self) -> int:
        """Tokens of text an update, about."""
        return self.batch_tokens * self.accumulation


@dataclass(frozen=True, kw_only=True)
class PositivesConfig:
    """One source of positives: pairs of texts that mean the same."""

    source: str  # file or glob pattern: plain lines for views and rewordings, JSON lines for pairs
    share: float  # of the pairs of an update
    # Each text without this share of its words; of rewordings, the second. Views at 0 differ by the
    # model's own dropout only (Gao et al., "SimCSE", 2021).
    word_dropout: float = 0.0
    rewording: bool = False  # the second text is said in other words, by rule
    hard_negatives: int = 0  # changes of the first text's meaning are negatives: those given, then by rule
    fields: tuple[str, ...] = ("a", "b")  # a pair's two texts, perhaps a hard negative; none: plain lines
    max_words: int = 256  # longer texts are left out
    min_overlap: float = 0.0  # pairs that share fewer words (Jaccard) are left out
    max_overlap: float = 1.0  # pairs that share more teach nothing

    def __post_init__(self) -> None:
        if len(self.fields) not in (0, 2, 3):
            raise InputError(f"fields must name two or three fields or none, not {len(self.fields)}")
        if not (self.share > 0 and self.max_words > 0 and self.hard_negatives >= 0):
            raise InputError("share and max_words must be positive, hard_negatives not negative")
        if not 0 <= self.word_dropout < 1:
            raise InputError("word_dropout must be from 0 to below 1")
        if not 0 <= self.min_overlap <= self.max_overlap <= 1:
            raise InputError("min_overlap and max_overlap must be from 0 to 1")
        if not self.fields and (self.min_overlap, self.max_overlap) != (0, 1):
            raise InputError("min_overlap and max_overlap are of pairs, not of plain lines")


@dataclass(frozen=True, kw_only=True)
class RatedConfig:
    """Rated pairs of general language: the more alike is to score higher."""

    sources: tuple[str, ...]  # rated files or glob patterns; only ratings of one file are compared
    fields: tuple[str, ...]  # where the two texts and the rating stand
    pairs: int  # an update
    weight: float  # of this loss beside that of the positives

    def __post_init__(self) -> None:
        if len(self.fields) != 3:
            raise InputError(f"fields must name three fields, not {len(self.fields)}")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class OverlapConfig:
    """Texts whose neighbours are to be those that they share the most, and the rarest, words with."""

    source: str  # file or glob pattern of pairs, such as references and generated summaries
    fields: tuple[str, ...]  # where a pair's two texts stand
    pairs: int  # an update, beside the first texts of the positives
    weight: float  # of this loss beside that of the positives

    def __post_init__(self) -> None:
        if len(self.fields) != 2:
            raise InputError(f"fields must name two fields, not {len(self.fields)}")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Permuted language modelling beside the contrastive stage."""

    texts: str  # file or glob pattern of cleaned texts, one a line
    update_tokens: int  # tokens of text an update, about; what one process has of them is taken at once
    predict_probability: float  # share of a text's tokens that is predicted
    weight: float  # of this loss beside that of the positives

    def __post_init__(self) -> None:
        if not (self.update_tokens > 0 and self.weight > 0):
            raise InputError("update_tokens and weight must be positive")
        if not 0 < self.predict_probability < 1:
            raise InputError("predict_probability must be between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class ContrastiveConfig(Optimization):
    """The contrastive stage: pairs are drawn together, everything else apart."""

    model: str  # the model folder it starts from
    positives: tuple[PositivesConfig, ...]
    rated: tuple[RatedConfig, ...] = ()
    overlap: OverlapConfig | None = None
    exclude: tuple[str, ...] = ()  # rated files whose texts must not be trained on
    dev: tuple[str, ...]  # rated files, and
    dev_comments: str  # cleaned comments: the model that agrees most with both is kept
    hold_out_contrast: bool  # learn nothing of the words that the contrast set turns on
    temperature: float  # of the softmax over cosine similarities
    hard_negative_weight: float  # of a hard negative, beside the other negatives
    pairs: int  # an update; every other pair's texts are negatives
    chunk_tokens: int  # of the texts that are embedded at once, padding included
    cache_gradients: bool  # hold one chunk in memory at a time, and embed it twice
    language_model: LanguageModelConfig | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.positives or not self.dev:
            raise InputError("positives and dev must not be empty")


C = TypeVar("C")


def load(cls: type[C], file: Path, overrides: list[str]) -> C:
    """Read a configuration from a YAML file and apply `key=value` overrides to it.

    The key of an override may lead into a value (`model.hidden_size=128`). A number counts the
    items of a list from 0 (`positives.1.share=0.5`). An item that becomes null is left out
    (`positives.1=null`). In every text `${data}` becomes the folder of the data sets: the key
    `data`, if there is one, or else `data_root()`. Raises InputError for whatever is wrong.
    """
    return build(cls, _read(file, overrides), str(file))


def _read(file: Path, overrides: list[str]) -> Any:
    """Return the values of a YAML file with its overrides, not checked yet (see `load`)."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not valid YAML ({' '.join(str(error).split())})") from None
    for override in overrides:
        _override(values, portable(override))
    values = _texts(_without_gaps(values), _local)
    root = (values.pop("data", None) if isinstance(values, dict) else None) or data_root()
    if not isinstance(root, str):
        raise InputError(f"{file}: data must name a folder, not {root!r}")
    return _texts(values, lambda text: text.replace("${data}", root))


def data_root() -> str:
    """Return the folder of the data sets: the environment variable `SIMLLM_DATA`, or else `data`."""
    return os.environ.get("SIMLLM_DATA") or "data"


def portable(values: Any) -> Any:
    """Return nested values whose paths are Unicode, also where the locale knows only ASCII.

    There Python stands in other characters for the bytes of a path (see `os.fsencode`).
    """
    return _texts(values, lambda text: os.fsencode(text).decode("utf-8", "surrogateescape"))


def _local(text: str) -> str:
    """Undo `portable`: return a path that the locale's file functions accept."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def _texts(values: Any, change: Callable[[str], str]) -> Any:
    """Return nested values with every text in them changed."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {_texts(key, change): _texts(value, change) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_texts(value, change) for value in values)
    return values


def _override(values: Any, override: str) -> None:
    name, equals, text = override.partition("=")
    if not equals:
        raise InputError(f"{override!r}: expected key=value")
    path = name.split(".")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{override!r}: not a YAML value") from None
    for depth, key in enumerate(path):
        if isinstance(values, list):
            if not key.isdecimal() or int(key) >= len(values):
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


def _without_gaps(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_gaps(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_without_gaps(value) for value in values if value is not None]
    return values


def _main() -> int:
    """Print `out` of a training configuration, for the job scripts."""
    file, *overrides = sys.argv[1:]
    try:
        sys.stdout.buffer.write(os.fsencode(_read(Path(file), overrides)["out"]))
    except (InputError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
