"""The settings that the configurations of all training stages have, such as the seed and learning rate."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from simllm.errors import InputError

# For keys that are newer than version 0.1. Older runs can be resumed if such a key has its default value.
ADDED_LATER = {"added": True}
MAY_BE_ZERO = {"may_be_zero": True}  # for numbers; all others must be positive


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings that all training stages share, such as the seed and the learning rate.

    An update is one optimizer step. The setting `updates` is the number of optimizer steps of the training.
    """

    out: str  # the folder of the run
    seed: int = field(metadata=MAY_BE_ZERO)
    updates: int
    warmup_updates: int = field(metadata=MAY_BE_ZERO)
    learning_rate: float  # at the end of the warm-up
    warmup_start: float = field(metadata=MAY_BE_ZERO)  # learning rate of the first update
    weight_decay: float = field(metadata=MAY_BE_ZERO)
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    clip_norm: float  # gradients are scaled down to this norm
    evaluate_every: int  # updates between evaluations; each evaluation saves the state
    precision: str  # of matrix products, over float32 weights: fp32, bf16, or fp16 with loss scaling
    # updates in a row that may have no finite gradient
    max_skipped: int = field(default=10, metadata=MAY_BE_ZERO)
    # Whether the backward pass computes the encoder's layers again: less memory, a third more arithmetic.
    gradient_checkpointing: bool = field(default=False, metadata=ADDED_LATER)
    # Whether torch.compile compiles the encoder's layers; pretraining on a GPU always compiles them.
    compile: bool = field(default=False, metadata=ADDED_LATER)
    tensorboard: bool = False  # whether to write the log for TensorBoard, too

    def __post_init__(self) -> None:
        problems = []
        for key in fields(self):
            value = getattr(self, key.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if value < 0 or not (value or "may_be_zero" in key.metadata):
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
