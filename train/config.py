"""What a pretraining run is made of; every key of a `configs/*.yaml` stands here."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simllm.config import ModelConfig, build
from simllm.errors import InputError


@dataclass(frozen=True)
class CorpusConfig:
    """Where the comments come from."""

    sources: tuple[str, ...]  # files, glob patterns, or `installed-python`
    exclude: tuple[str, ...] = ()  # rated files whose texts must not be trained on
    test_share: float = 0.1  # of the texts, held out

    def __post_init__(self) -> None:
        if not 0 < self.test_share < 1:
            raise InputError(f"test_share must be between 0 and 1, not {self.test_share}")


@dataclass(frozen=True)
class PretrainConfig:
    """A pretraining run. An update is one optimizer step."""

    out: str  # the run's folder
    seed: int
    corpus: CorpusConfig
    model: ModelConfig
    predict_probability: float  # share of a text's tokens that is predicted
    batch_tokens: int  # tokens a batch, about: texts of equal length fill it
    accumulation: int  # batches an update
    updates: int
    warmup_updates: int
    learning_rate: float  # at the end of the warm-up
    warmup_start: float  # learning rate of the first update
    weight_decay: float
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    clip_norm: float  # gradients are scaled down to this norm
    evaluate_every: int  # updates between test perplexity, best model and saved state
    test_texts: int  # held-out texts that the perplexity is measured on
    bf16: bool  # bfloat16 matrix products over float32 weights

    def __post_init__(self) -> None:
        positive = ["batch_tokens", "accumulation", "updates", "learning_rate", "clip_norm"]
        positive += ["evaluate_every", "test_texts"]
        problems = [f"{name} must be positive" for name in positive if getattr(self, name) <= 0]
        if not 0 < self.predict_probability < 1:
            problems.append("predict_probability must be between 0 and 1")
        if not 0 <= self.warmup_updates <= self.updates:
            problems.append("warmup_updates must be between 0 and updates")
        if problems:
            raise InputError("; ".join(problems))


def load(file: Path, overrides: list[str]) -> PretrainConfig:
    """Read a YAML file, apply `key=value` overrides (`model.hidden_size=128`), check it all."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not valid YAML ({' '.join(str(error).split())})") from None
    values = copy.deepcopy(values)
    for override in overrides:
        _override(values, override)
    return build(PretrainConfig, values, str(file))


def _override(values: Any, override: str) -> None:
    name, equals, text = override.partition("=")
    if not equals:
        raise InputError(f"{override!r}: expected key=value")
    *path, last = name.split(".")
    for key in path:
        values = values.setdefault(key, {}) if isinstance(values, dict) else None
    if not isinstance(values, dict):
        raise InputError(f"{override!r}: {'.'.join(path)} holds no keys")
    try:
        values[last] = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{override!r}: not a YAML value") from None
