"""Metrics to compare with: each file makes one kind of them out of a library.

A file's `load` imports what the metric needs and returns the function that scores. What is
missing it says by `UnavailableError`, with the remedy; such a metric is left out, never scored 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError

Score = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]  # candidates, references -> (n,)


class UnavailableError(InputError):
    """A metric cannot be computed here; the message is the remedy."""


@dataclass(frozen=True)
class Baseline:
    """Where a metric is made, and what decides on its values."""

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
    "rouge-1": Baseline("rouge", ["rouge-score"], {"kind": "rouge1"}),
    "rouge-2": Baseline("rouge", ["rouge-score"], {"kind": "rouge2"}),
    "rouge-l": Baseline("rouge", ["rouge-score"], {"kind": "rougeL"}),
    "rouge-w": Baseline("rouge_w", ["rouge-score"]),
    "jaccard": Baseline("jaccard", []),
    "tf-idf": Baseline("tf_idf", ["scikit-learn"]),
    "chrf": Baseline("chrf", ["sacrebleu"]),
    "word-vectors": Baseline("word_vectors", ["scipy"], argument="CORPUS"),
    "sentence-bert": Baseline("sentence_bert", ["sentence-transformers"], argument="MODEL"),
    "bertscore": Baseline("bertscore", ["bert-score", "transformers"], argument="MODEL"),
}


def baseline(name: str, argument: str = "") -> Score:
    """Return what scores by the baseline `name`, one of `BASELINES`.

    Raises UnavailableError, with the remedy, where a library, data or the argument is missing.
    """
    made = BASELINES[name]
    if bool(argument) != bool(made.argument):
        wanted = f"{name}={made.argument}" if made.argument else f"{name} alone"
        raise UnavailableError(f"name it as {wanted}")
    try:
        module = import_module(f"{__name__}.{made.module}")
        return module.load(*([argument] if argument else []), **made.options)
    except ModuleNotFoundError as error:
        package = {"sklearn": "scikit-learn"}.get(error.name or "", (error.name or "").replace("_", "-"))
        raise UnavailableError(f"{package} is not installed: pip install {package}") from None
