"""Configuration of pretraining runs: the keys of a YAML file such as `configs/mini.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from simllm.errors import InputError
from simllm.model import saved_model
from simllm.model.config import ModelConfig
from train.corpus.config import CorpusConfig
from train.runtime.config import TrainingConfig

# What decides the names and shapes of the weights.
_SHAPE = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "relative_attention_num_buckets",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(TrainingConfig):
    """Settings for pretraining with permuted or, for comparison, masked language modelling."""

    corpus: CorpusConfig
    # The shape; may be left out with `start`, which has one.
    model: ModelConfig = None  # type: ignore[assignment]  # filled below
    # The model folder to continue from: its weights, vocabulary and pooling.
    start: str | None = None
    # Initial token embeddings without `start`; ppmi: from neighbours in the corpus.
    token_vectors: Literal["random", "ppmi"] = "random"
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
        if self.start:
            shape = ModelConfig.load(Path(self.start) / saved_model.CONFIG)
            given = self.model or shape
            problems += [
                f"model.{name} must be {getattr(shape, name)}, as in start, or model left out"
                for name in _SHAPE
                if getattr(given, name) != getattr(shape, name)
            ]
            object.__setattr__(self, "model", given)
            if self.token_vectors == "ppmi":
                problems.append("token_vectors: ppmi would replace the vectors of start; leave it out")
        elif not self.model:
            raise InputError("; ".join([*problems, "missing key model, or start"]))
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
