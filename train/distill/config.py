"""What a distillation is made of; every key of `configs/distill.yaml` stands here."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.errors import InputError
from simllm.model.config import ModelConfig
from train.distill.student import StartConfig
from train.distill.texts import TextsConfig
from train.runtime.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class DistillConfig(TrainingConfig):
    """Distillation: a student learns the embeddings of its teachers."""

    texts: tuple[TextsConfig, ...]
    max_texts: int | None = None  # the rest is left out, in groups; none: all
    exclude: tuple[str, ...] = ()  # rated files whose texts must not be trained on
    hold_out_contrast: bool = False  # make no variants with the words that the contrast set turns on
    teachers: tuple[str, ...]  # folders of sentence-transformers or transformers
    model: ModelConfig  # the student's shape; the vocabulary is learned from the texts
    start: StartConfig | None = None  # what the student's weights start from; none: random numbers
    groups: int  # of texts, an update
    chunk_tokens: int  # of the texts that are embedded at once, padding included
    cosine_weight: float  # of 1 - cosine to the targets
    squared_weight: float  # of the squared distance from the targets
    similarity_weight: float  # of the divergence of the neighbours in an update
    temperature: float  # of the softmax over cosines
    dev: tuple[str, ...]  # rated files for the criterion that chooses the best model

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.texts or not self.teachers or not self.dev:
            raise InputError("texts, teachers and dev must not be empty")
        if not self.cosine_weight + self.squared_weight + self.similarity_weight:
            raise InputError("cosine_weight, squared_weight and similarity_weight are all 0")
