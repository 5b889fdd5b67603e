"""Configuration of distillation runs, with all keys of `configs/distill.yaml`."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.errors import InputError
from simllm.model.network_shape import ModelConfig
from train.distill.student import StartConfig
from train.distill.texts import TextsConfig
from train.runtime.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class DistillConfig(TrainingConfig):
    """Settings for distillation: a small model (the student) learns the embeddings of its teachers.

    The teachers are larger sentence encoders.
    """

    texts: tuple[TextsConfig, ...]
    max_texts: int | None = None  # largest number of texts; none: all texts
    exclude: tuple[str, ...] = ()  # rated files, whose texts are excluded from training
    hold_out_contrast: bool = False  # do not swap the words that decide the contrast set to make variants
    teachers: tuple[str, ...]  # folders of sentence-transformers or transformers
    model: ModelConfig  # shape of the student; its vocabulary is learned from the texts
    start: StartConfig | None = None  # initial weights of the student; none: random
    groups: int  # groups of texts per update
    chunk_tokens: int  # tokens that are embedded at once, padding included
    cosine_weight: float  # weight of 1 - cosine to the targets
    squared_weight: float  # weight of the squared distance from the targets
    similarity_weight: float  # weight of the difference in similarities between the texts of an update
    temperature: float  # of the softmax over cosines, in the loss of similarities
    dev: tuple[str, ...]  # rated files for the criterion that chooses the best model

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.texts or not self.teachers or not self.dev:
            raise InputError("texts, teachers and dev must not be empty")
        if not self.cosine_weight + self.squared_weight + self.similarity_weight:
            raise InputError("cosine_weight, squared_weight and similarity_weight are all 0")
