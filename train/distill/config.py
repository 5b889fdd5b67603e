"""Configuration of distillation runs, with all keys of `configs/distill.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from simllm.errors import InputError
from simllm.model.config import ModelConfig
from train.runtime.config import MAY_BE_ZERO, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class TextsConfig:
    """One source of texts."""

    source: str  # file or glob pattern: plain lines, or JSON lines with `fields`
    # Fields of JSON lines with the texts of a group; none: plain lines.
    fields: tuple[str, ...] = ()
    # Values, one of which a field must have.
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Values that a field must not have.
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Largest number of groups, chosen at random; None: all.
    limit: int | None = None
    # Share of the groups that get variants.
    variants: float = 0.0
    max_words: int = 40  # groups with a longer text are left out
    # Whether every sentence of a text becomes a group of its own.
    sentences: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit must be positive, not {self.limit}")
        if not 0 <= self.variants <= 1 or self.max_words < 1:
            raise InputError("variants must be from 0 to 1, max_words positive")
        if self.sentences and len(self.fields) > 1:
            raise InputError("sentences: expected one field, or plain lines")


NEAREST = 64  # texts nearest to a text, from which its neighbours in an update are drawn


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Settings for an encoder that learns the embeddings of its teachers."""

    texts: tuple[TextsConfig, ...]
    max_texts: int | None = None  # largest number of texts; none: all texts
    teachers: tuple[str, ...]  # folders of sentence-transformers or transformers
    groups: int  # groups of texts per update
    # weight of 1 - cosine to the targets
    cosine_weight: float = field(metadata=MAY_BE_ZERO)
    # weight of the squared distance from the targets
    squared_weight: float = field(default=0.0, metadata=MAY_BE_ZERO)
    # weight of the difference in similarities between the texts of an update
    similarity_weight: float = field(metadata=MAY_BE_ZERO)
    # weight of the squared difference of the cosine of each pair of texts in an update
    pair_weight: float = field(default=0.0, metadata=MAY_BE_ZERO)
    # weight of 1 - Pearson's correlation between the cosines of the pairs in an update and the teachers'
    correlation_weight: float = field(default=0.0, metadata=MAY_BE_ZERO)
    # texts beside each group that the teachers find similar to its first one
    neighbours: int = field(default=0, metadata=MAY_BE_ZERO)
    # share of shared character n-grams, beside the teachers, in the similarities to learn
    ngram_share: float = field(default=0.0, metadata=MAY_BE_ZERO)

    def __post_init__(self) -> None:
        if not self.texts or not self.teachers:
            raise InputError("texts and teachers must not be empty")
        names = "cosine_weight squared_weight similarity_weight pair_weight correlation_weight".split()
        weights = [getattr(self, name) for name in names]
        if min(weights) < 0 or not any(weights):
            raise InputError(f"{', '.join(names)} must not be negative, nor all 0")
        if not (0 <= self.neighbours <= NEAREST and 0 <= self.ngram_share < 1):
            raise InputError(f"neighbours must be from 0 to {NEAREST}, ngram_share from 0 to below 1")
        if self.groups < 1 or (self.max_texts is not None and self.max_texts < 1):
            raise InputError("groups and max_texts must be positive")


@dataclass(frozen=True, kw_only=True)
class StartConfig:
    """The teacher from which the student's initial weights are taken.

    Attributes:
        teacher: The folder of a BERT or MPNet model.
        layers: Indices of the teacher's layers, one for each layer of the student; empty: random layers.
    """

    teacher: str
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DistillConfig(ImitationConfig, TrainingConfig):
    """All settings of a distillation."""

    exclude: tuple[str, ...] = ()  # rated files, whose texts are excluded from training
    # Whether variants never swap the words that decide the contrast set.
    hold_out_contrast: bool = False
    model: ModelConfig  # shape of the student; its vocabulary is learned from the texts
    start: StartConfig | None = None  # initial weights of the student; none: random
    chunk_tokens: int  # tokens that are embedded at once, padding included
    temperature: float  # of the softmax over cosines, in the loss of similarities
    dev: tuple[str, ...]  # rated files for the criterion that chooses the best model

    def __post_init__(self) -> None:
        TrainingConfig.__post_init__(self)
        ImitationConfig.__post_init__(self)
        if not self.dev:
            raise InputError("dev must not be empty")
