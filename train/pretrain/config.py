"""Configuration of pretraining runs: the keys of a YAML file such as `configs/mini.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simllm.errors import InputError
from simllm.model.config import ModelConfig
from train.corpus.config import CorpusConfig
from train.runtime.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(TrainingConfig):
    """Settings for pretraining with permuted or, for comparison, masked language modelling."""

    corpus: CorpusConfig
    model: ModelConfig
    # Initial token embeddings; ppmi: from neighbours in the corpus.
    token_vectors: Literal["random", "ppmi"]
    # documents: one text per input; blocks: inputs of full length, cut anywhere.
    packing: Literal["documents", "blocks"]
    # Share of a text's tokens that are predicted.
    predict_probability: float
    # Approximate tokens of text in a batch, which a device processes at once.
    batch_tokens: int
    # Batches per update, over all processes.
    accumulation: int
    test_texts: int  # number of held-out texts for the perplexity
    # Whether a process keeps only its part of weights, gradients and moments, for models that outgrow a GPU.
    sharding: bool = False
    # permuted: a prediction sees the tokens that were predicted before it; masked: it sees none of them
    objective: Literal["permuted", "masked"] = "permuted"

    def __post_init__(self) -> None:
        problems = []
        try:
            super().__post_init__()
        except InputError as error:
            problems.append(str(error))
        if not self.predict_probability < 1:
            problems.append("predict_probability must be below 1")
        if self.token_vectors == "ppmi" and self.model.hidden_size >= self.model.vocab_size:
            problems.append("token_vectors: ppmi needs a vocabulary larger than hidden_size")
        if self.sharding and self.precision == "fp16":
            problems.append("sharding: not with fp16, but with bf16 or fp32")
        if self.batch_tokens < self.model.max_length:
            problems.append(f"batch_tokens must hold the longest input, {self.model.max_length} tokens")
        if problems:
            raise InputError("; ".join(problems))

    @property
    def update_tokens(self) -> int:
        """Approximate number of text tokens in one update."""
        return self.batch_tokens * self.accumulation
