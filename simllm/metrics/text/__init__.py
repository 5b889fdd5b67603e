"""Metrics to compare with, made of well-known libraries, one kind in each file.

A file's `load` imports the library and returns the scoring function. If something is missing, it
raises `UnavailableError` with the remedy; such a metric is left out, never scored 0. A file's `data`,
if it has one, names the files that the scores depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from simllm.errors import InputError
from simllm.metrics.protocol import Score as Score

SINGLE_DIGITS = 6  # decimals of a score from single-precision embeddings; the rest depends on the batch


class UnavailableError(InputError):
    """A metric cannot be computed here; the message is the remedy."""


@dataclass(frozen=True)
class Baseline:
    """The module that makes a metric, and what the scores depend on."""

    module: str
    libraries: Sequence[str]  # distributions
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""  # what must be given after the name and "="


BASELINES = {
    "bleu": Baseline("bleu", ["nltk"], {"weights": (0.25,) * 4}),
    "bleu-1": Baseline("bleu", ["nltk"], {"weights": (1,)}),
    "bleu-2": Baseline("bleu", ["nltk"], {"weights": (0, 1)}),
    "bleu-3": Baseline("bleu", ["nltk"], {"weights": (0, 0, 1)}),
    "bleu-4": Baseline("bleu", ["nltk"], {"weights": (0, 0, 0, 1)}),
    "meteor": Baseline("meteor", ["nltk"]),
    "rouge-1": Baseline("rouge", ["rouge-score", "nltk"], {"kind": "rouge1"}),
    "rouge-2": Baseline("rouge", ["rouge-score", "nltk"], {"kind": "rouge2"}),
    "rouge-l": Baseline("rouge", ["rouge-score", "nltk"], {"kind": "rougeL"}),
    "rouge-w": Baseline("rouge_w", ["rouge-score", "nltk"]),
    "jaccard": Baseline("jaccard", []),
    "tf-idf": Baseline("tf_idf", ["scikit-learn"]),
    "chrf": Baseline("chrf", ["sacrebleu"]),
    "word-vectors": Baseline("word_vectors", ["scipy"], argument="CORPUS"),
    "sentence-bert": Baseline("sentence_bert", ["sentence-transformers", "transformers"], argument="MODEL"),
    "bertscore": Baseline("bertscore", ["bert-score", "transformers"], argument="MODEL"),
}


def baseline(name: str, argument: str = "") -> Score:
    """Return the scoring function of the baseline `name`, one of `BASELINES`.

    Raises UnavailableError, with the remedy, if a library, data or the argument is missing.
    """
    made = BASELINES[name]
    if bool(argument) != bool(made.argument):
        wanted = f"{name}={made.argument}" if made.argument else f"{name} alone"
        raise UnavailableError(f"name it as {wanted}")
    try:
        return _module(name).load(*_given(argument), **made.options)
    except ModuleNotFoundError as error:
        package = {"sklearn": "scikit-learn"}.get(error.name or "", (error.name or "").replace("_", "-"))
        raise UnavailableError(f"{package} is not installed: pip install {package}") from None


def data(name: str, argument: str = "") -> dict[str, Path]:
    """Return the files or folders that the scores of a baseline depend on, by what they are."""
    found: Callable[..., dict[str, Path]] = getattr(_module(name), "data", lambda *_: {})
    return found(*_given(argument))


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{BASELINES[name].module}")


def _given(argument: str) -> list[str]:
    return [argument] if argument else []
