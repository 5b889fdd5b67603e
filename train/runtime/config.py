"""Configuration of pretraining and contrastive training: all keys of the YAML files, and the loader."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from simllm.errors import InputError
from simllm.io.strict_loading import build
from simllm.model.config import HeadConfig, ModelConfig

# Marks keys that are newer than version 0.1: with the default value, older runs can be resumed.
ADDED_LATER = {"added": True}


@dataclass(frozen=True)
class CorpusConfig:
    """Settings for the corpus of code comments: its sources, and the texts left out or held out."""

    sources: tuple[str, ...]  # files, folders of code, corpora, glob patterns, or `installed-python`
    exclude: tuple[str, ...] = ()  # rated files; their texts are left out of the corpus
    test_share: float = 0.1  # share of the texts that is held out
    tags: int = 0  # number of tagged revisions to read from git repositories, besides the newest

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("sources must not be empty")
        if not 0 < self.test_share < 1:
            raise InputError(f"test_share must be between 0 and 1, not {self.test_share}")
        if self.tags < 0:
            raise InputError(f"tags must not be negative, but is {self.tags}")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings that all training stages share, such as the seed and the learning rate.

    An update is one optimizer step.
    """

    out: str  # the folder of the run
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
    evaluate_every: int  # updates between evaluations; each evaluation saves the state
    precision: str  # of matrix products, over float32 weights: fp32, bf16, or fp16 with loss scaling
    max_skipped: int = 10  # updates in a row that may have no finite gradient
    tensorboard: bool = False  # whether to write the log for TensorBoard, too

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


_MAY_BE_ZERO = {"seed", "warmup_updates", "warmup_start", "weight_decay", "max_skipped", "anchor_weight"}
_MAY_BE_ZERO |= {"cosine_weight", "squared_weight", "similarity_weight"}


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(TrainingConfig):
    """Settings for pretraining with permuted or, for comparison, masked language modelling."""

    corpus: CorpusConfig
    model: ModelConfig
    token_vectors: str  # initial token embeddings: random, or ppmi (from neighbours in the corpus)
    packing: str  # documents: one text per input; blocks: inputs of full length, cut anywhere
    predict_probability: float  # share of a text's tokens that are predicted
    batch_tokens: int  # approximate tokens of text in a batch, which a device processes at once
    accumulation: int  # batches per update, over all processes
    test_texts: int  # number of held-out texts for the perplexity
    # permuted: a prediction sees the tokens that were predicted before it; masked: it sees none of them
    objective: str = field(default="permuted", metadata=ADDED_LATER)

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
        """Approximate number of text tokens in one update (optimizer step)."""
        return self.batch_tokens * self.accumulation


@dataclass(frozen=True, kw_only=True)
class PositivesConfig:
    """Settings for one source of positive pairs (two texts with the same meaning).

    A file of JSON lines holds pairs. In a file of plain lines, each line is paired with its rewording
    by rule, or with a copy of the line. The two copies differ by word dropout and by the model's
    dropout (Gao et al., "SimCSE", 2021).
    """

    source: str  # file or glob pattern: plain lines, or JSON lines with pairs
    share: float  # share of the pairs of an update
    word_dropout: float = 0.0  # share of words dropped from both texts, or only from a rewording
    rewording: bool = False  # whether the second text is reworded by rule
    hard_negatives: int = 0  # texts with a changed meaning per pair: from the file, and then by rule
    fields: tuple[str, ...] = ("a", "b")  # fields of the two texts and of a hard negative; (): plain lines
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)  # JSON lines with one of these values
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)  # JSON lines without these values
    max_words: int = 256  # longer texts are left out
    min_overlap: float = 0.0  # pairs that share fewer words (Jaccard) are left out
    max_overlap: float = 1.0  # pairs that share more words are left out

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
            raise InputError("min_overlap and max_overlap need pairs, but the source has plain lines")


@dataclass(frozen=True, kw_only=True)
class RatedPairsConfig:
    """Settings for a ranking loss over text pairs whose similarity people have rated."""

    sources: tuple[str, ...]  # rated files or glob patterns; only ratings within one file are compared
    fields: tuple[str, ...]  # fields of the two texts and of the rating
    pairs: int  # number of pairs per update
    weight: float  # weight of this loss; the loss of the positives has weight 1

    def __post_init__(self) -> None:
        if len(self.fields) != 3:
            raise InputError(f"fields must name three fields, not {len(self.fields)}")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class LexicalTeacherConfig:
    """Settings for distillation from the lexical teacher, which compares texts by their words.

    Texts that share many words, especially rare words, get similar embeddings.
    """

    source: str  # file or glob pattern of pairs, such as references and generated summaries
    fields: tuple[str, ...]  # fields of the two texts
    max_words: int = 256  # longer texts are left out
    pairs: int  # number of pairs per update; the first texts of the positives are compared, too
    weight: float  # weight of this loss; the loss of the positives has weight 1

    def __post_init__(self) -> None:
        if len(self.fields) != 2:
            raise InputError(f"fields must name two fields, not {len(self.fields)}")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Settings for permuted language modelling as an auxiliary task of contrastive training."""

    texts: str  # file or glob pattern of cleaned texts, one per line
    update_tokens: int  # approximate tokens of text per update; each process takes its part as one batch
    predict_probability: float  # share of a text's tokens that are predicted
    weight: float  # weight of this loss; the loss of the positives has weight 1

    def __post_init__(self) -> None:
        if not (self.update_tokens > 0 and self.weight > 0):
            raise InputError("update_tokens and weight must be positive")
        if not 0 < self.predict_probability < 1:
            raise InputError("predict_probability must be between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class MeaningSourceConfig:
    """Settings for one source of text pairs, labelled as having the same meaning or different meanings."""

    source: str  # file or glob pattern: plain lines for rule-made pairs, JSON lines of pairs or words
    share: float  # share of the pairs of an update
    # three fields: two texts and a label; two fields: texts with the same meaning; one or none: single
    # texts, from which pairs are made by rule
    fields: tuple[str, ...] = ()
    same: tuple[str, ...] = ("same",)  # labels of pairs with the same meaning
    different: tuple[str, ...] = ("different",)  # labels of other pairs; all other labels are left out
    sentences: tuple[str, ...] = ()  # files of sentences to put word pairs into; none: pairs of texts
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)  # JSON lines with one of these values
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)  # JSON lines without these values
    max_words: int = 40  # longer texts are left out

    def __post_init__(self) -> None:
        if len(self.fields) > 3:
            raise InputError(f"fields must name up to three fields, not {len(self.fields)}")
        if not (self.share > 0 and self.max_words > 0):
            raise InputError("share and max_words must be positive")
        if self.sentences and len(self.fields) < 2:
            raise InputError("sentences need pairs of words: name their fields")


@dataclass(frozen=True, kw_only=True)
class MeaningConfig:
    """Settings for training the meaning head together with the encoder.

    The meaning head predicts the probability that two texts have the same meaning.
    """

    head: HeadConfig
    sources: tuple[MeaningSourceConfig, ...]
    pairs: int  # number of pairs per update
    weight: float  # weight of this loss; the loss of the positives has weight 1
    freeze_encoder: bool = False  # whether this loss trains only the head

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("meaning.sources must not be empty")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class ContrastiveConfig(TrainingConfig):
    """Settings for contrastive training.

    Embeddings of texts with the same meaning move together, and all other embeddings move apart.
    """

    model: str  # the model folder to start from
    positives: tuple[PositivesConfig, ...]
    rated: tuple[RatedPairsConfig, ...] = ()
    overlap: LexicalTeacherConfig | None = None
    exclude: tuple[str, ...] = ()  # rated files; training texts that occur in them are left out
    dev: tuple[str, ...]  # rated files for the criterion that chooses the best model
    dev_comments: str  # cleaned comments, one per line, for the same criterion
    hold_out_contrast: bool  # whether to train without the deciding words of the contrast set
    temperature: float  # of the softmax over cosine similarities
    hard_negative_weight: float  # weight of a hard negative; other negatives have weight 1
    pairs: int  # number of pairs per update; the texts of the other pairs are negatives
    chunk_tokens: int  # tokens that are embedded at once, padding included
    cache_gradients: bool  # true: keep one chunk in memory at a time, and embed each chunk twice
    language_model: LanguageModelConfig | None = field(default=None, metadata=ADDED_LATER)
    # weight of a loss that keeps similarities between texts as in the initial model
    anchor_weight: float = field(default=0.0, metadata=ADDED_LATER)
    meaning: MeaningConfig | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.positives or not self.dev:
            raise InputError("positives and dev must not be empty")


C = TypeVar("C")


def load(cls: type[C], file: Path, overrides: list[str]) -> C:
    """Load a configuration from a YAML file and apply overrides.

    In all values, `${data}` is replaced by the folder of the data sets. The key `data` names that
    folder. Without the key, `data_root()` names it.

    Args:
        cls: The configuration class, such as `ContrastiveConfig`.
        file: The YAML file.
        overrides: `key=value` items. A key may name a nested value (`model.hidden_size=128`) or an
            item of a list, counted from 0 (`positives.1.share=0.5`). The value `null` removes an
            item of a list (`positives.1=null`).

    Returns:
        An instance of `cls` with checked values.

    Raises:
        InputError: The file cannot be read, or a key or value is unknown or wrong.
    """
    return build(cls, _read(file, overrides), str(file))


def _read(file: Path, overrides: list[str]) -> Any:
    """Read the nested values of a YAML file, and apply overrides; no key or value is checked.

    The argument `overrides` is explained in `load`.
    """
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not valid YAML ({' '.join(str(error).split())})") from None
    for override in overrides:
        _apply_override(values, decode_paths(override))
    values = _map_texts(_without_nulls(values), _encode_path)
    root = (values.pop("data", None) if isinstance(values, dict) else None) or data_root()
    if not isinstance(root, str):
        raise InputError(f"{file}: data must name a folder, not {root!r}")
    return _map_texts(values, lambda text: text.replace("${data}", root))


def data_root() -> str:
    """Return the folder of the data sets: the environment variable `SIMLLM_DATA`, by default `data`."""
    return os.environ.get("SIMLLM_DATA") or "data"


def hide_data_root(values: Any) -> Any:
    """Replace the data folder at the start of paths by `${data}`, as configuration files write it.

    Args:
        values: Nested dictionaries, lists and tuples of configuration values.

    Returns:
        A copy in which strings that start with `data_root()` and a slash start with `${data}` instead.
    """
    root = f"{data_root()}/"
    return _map_texts(
        values, lambda text: "${data}/" + text.removeprefix(root) if text.startswith(root) else text
    )


def decode_paths(values: Any) -> Any:
    """Decode all paths in nested configuration values as UTF-8, whatever the encoding of the locale.

    In an ASCII locale, Python represents the other bytes of a path by surrogates (`os.fsencode`).

    Args:
        values: Nested dictionaries, lists and tuples of configuration values.

    Returns:
        A copy with all strings decoded.
    """
    return _map_texts(values, lambda text: os.fsencode(text).decode("utf-8", "surrogateescape"))


def _encode_path(text: str) -> str:
    """Return a path in the form that `open` needs in the current locale; the inverse of `decode_paths`."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def _map_texts(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of nested dictionaries, lists and tuples, with `change` applied to each string."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {_map_texts(key, change): _map_texts(value, change) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_map_texts(value, change) for value in values)
    return values


def _apply_override(values: Any, override: str) -> None:
    """Change one value in nested configuration values, in place.

    Args:
        values: Nested dictionaries and lists.
        override: `key=value`, as for `load`.

    Raises:
        InputError: The override has no `=`, no valid value, or a key for a place that does not exist.
    """
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


def _without_nulls(values: Any) -> Any:
    """Return a copy of nested dictionaries and lists, without list items that are None."""
    if isinstance(values, dict):
        return {key: _without_nulls(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_without_nulls(value) for value in values if value is not None]
    return values


def _main() -> int:
    """Print the run folder (the key `out`) of a configuration file, for the job scripts.

    The command line is `CONFIG [key=value …]`. The exit status is 0, or 2 for bad input.
    """
    file, *overrides = sys.argv[1:]
    try:
        sys.stdout.buffer.write(os.fsencode(_read(Path(file), overrides)["out"]))
    except (InputError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
