"""Configuration of distillation runs, with all keys of `configs/distill.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from simllm.errors import InputError
from simllm.model.model_config import ModelConfig
from train.runtime.config import MAY_BE_ZERO, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class TextsConfig:
    """Settings for one source of texts: its files, which texts to use, and how many variants to make.

    Rules make a variant by changing a text. The variant is a rewording, or has another meaning.
    """

    source: str  # file or glob pattern: plain lines, or JSON lines with `fields`
    fields: tuple[str, ...] = ()  # fields of JSON lines with the texts of a group; none: plain lines
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)  # values, one of which a field must have
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)  # values that a field must not have
    limit: int | None = None  # largest number of groups, chosen at random; none: all
    variants: float = 0.0  # share of the groups that get a rule-made rewording and change of meaning
    max_words: int = 40  # groups with a longer text are left out

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit must be positive, not {self.limit}")
        if not 0 <= self.variants <= 1 or self.max_words < 1:
            raise InputError("variants must be from 0 to 1, max_words positive")


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Settings for an encoder that learns the embeddings of its teachers, which are larger encoders."""

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

    def __post_init__(self) -> None:
        if not self.texts or not self.teachers:
            raise InputError("texts and teachers must not be empty")
        weights = self.cosine_weight, self.squared_weight, self.similarity_weight
        if min(weights) < 0 or not any(weights):
            raise InputError(
                "cosine_weight, squared_weight and similarity_weight must not be negative, nor all 0"
            )
        if self.groups < 1 or (self.max_texts is not None and self.max_texts < 1):
            raise InputError("groups and max_texts must be positive")


@dataclass(frozen=True, kw_only=True)
class StartConfig:
    """Settings for the student's initial weights, which are taken from a teacher model.

    Attributes:
        teacher: The folder of a BERT or MPNet model.
        layers: Indices of the teacher's layers to copy, one for each layer of the student. If empty, the
            student's layers start with random weights.
    """

    teacher: str
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DistillConfig(ImitationConfig, TrainingConfig):
    """Settings for distillation: a small model (the student) learns the embeddings of its teachers.

    The teachers are larger sentence encoders.
    """

    exclude: tuple[str, ...] = ()  # rated files, whose texts are excluded from training
    hold_out_contrast: bool = False  # do not swap the words that decide the contrast set to make variants
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
