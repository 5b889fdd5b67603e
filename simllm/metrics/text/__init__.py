"""Baseline metrics for texts, most of them from well-known libraries, one kind in each module.

The function `load` of a module imports the library and returns the scoring function. If something is
missing, it raises `UnavailableError` with the remedy; such a metric is left out, never scored 0. The
function `data`, if there is one, returns the files that the scores depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from simllm.errors import InputError
from simllm.metrics.protocol import ScoreFunction as ScoreFunction

SINGLE_DIGITS = 6  # decimals of a score from float32 embeddings; further digits depend on the batch


class UnavailableError(InputError):
    """A metric cannot be computed here; the message is the remedy."""


@dataclass(frozen=True)
class Baseline:
    """A baseline metric.

    Attributes:
        module: The module in this package that implements it.
        libraries: The distributions whose versions can change its scores.
        options: Arguments of the module's `load`.
        argument: The kind of argument that the name needs, as in `name=ARGUMENT`; empty for none.
    """

    module: str
    libraries: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""


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


def baseline(name: str, argument: str = "") -> ScoreFunction:
    """Return the scoring function of a baseline.

    Args:
        name: A key of `BASELINES`.
        argument: The text after `=`, such as a model or a corpus.

    Raises:
        UnavailableError: A library, data or the argument is missing; the message says what to do.
    """
    chosen = BASELINES[name]
    if bool(argument) != bool(chosen.argument):
        expected = f"{name}={chosen.argument}" if chosen.argument else f"{name} alone"
        raise UnavailableError(f"name it as {expected}")
    try:
        return _module(name).load(*_arguments(argument), **chosen.options)
    except ModuleNotFoundError as error:
        package = {"sklearn": "scikit-learn"}.get(error.name or "", (error.name or "").replace("_", "-"))
        raise UnavailableError(f"{package} is not installed: pip install {package}") from None


def data(name: str, argument: str = "") -> dict[str, Path]:
    """Return the files or folders that the scores of a baseline depend on, by their role."""
    data_of_module: Callable[..., dict[str, Path]] = getattr(_module(name), "data", lambda *_: {})
    return data_of_module(*_arguments(argument))


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{BASELINES[name].module}")


def _arguments(argument: str) -> list[str]:
    return [argument] if argument else []
