"""The table `BASELINES` of known metrics for texts, such as BLEU, and a function that loads one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from simllm.metrics.interface import UnavailableError
from simllm.metrics.text.readable_texts import TextScorer


@dataclass(frozen=True)
class Baseline:
    """Description of a known metric for texts, from which the function `baseline` loads the metric.

    Attributes:
        module: The module in `simllm.metrics.text` that implements the metric.
        libraries: The Python packages whose versions can change scores.
        options: Keyword arguments for the function that loads the metric.
        argument: What the user must add to the name, as in `bertscore=MODEL`: "MODEL" or "CORPUS" (a file of
            texts). Empty if the metric takes no argument.
        function: The function of the module that loads the metric.
    """

    module: str
    libraries: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""
    function: str = "load"


BASELINES = {
    "bleu": Baseline("bleu", ["nltk"], {"weights": (0.25,) * 4}),
    "bleu-1": Baseline("bleu", ["nltk"], {"weights": (1,)}),
    "bleu-2": Baseline("bleu", ["nltk"], {"weights": (0, 1)}),
    "bleu-3": Baseline("bleu", ["nltk"], {"weights": (0, 0, 1)}),
    "bleu-4": Baseline("bleu", ["nltk"], {"weights": (0, 0, 0, 1)}),
    "bleu-smoothed": Baseline("bleu", ["sacrebleu"], function="load_smoothed"),
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


def baseline(name: str, argument: str = "") -> TextScorer:
    """Load a metric of `BASELINES`; `argument` is a model or a corpus, and empty for most metrics.

    If a library, a file or the argument is missing, the message of the UnavailableError says what to do.
    """
    chosen = BASELINES[name]
    if bool(argument) != bool(chosen.argument):
        expected = f"{name}={chosen.argument}" if chosen.argument else f"{name} alone"
        raise UnavailableError(f"name it as {expected}")
    try:
        loaded: TextScorer = getattr(_module(name), chosen.function)(*_arguments(argument), **chosen.options)
        return loaded
    except ModuleNotFoundError as error:
        package = {"sklearn": "scikit-learn"}.get(error.name or "", (error.name or "").replace("_", "-"))
        raise UnavailableError(f"{package} is not installed: pip install {package}") from None


def data(name: str, argument: str = "") -> dict[str, Path]:
    """Return the paths of the models or corpora that a metric of `BASELINES` reads, by what they are."""
    data_of_module: Callable[..., dict[str, Path]] = getattr(_module(name), "data", lambda *_: {})
    return data_of_module(*_arguments(argument))


def _module(name: str) -> ModuleType:
    return import_module(f"{__package__}.{BASELINES[name].module}")  # a name of the table, never of a user


def _arguments(argument: str) -> list[str]:
    return [argument] if argument else []
