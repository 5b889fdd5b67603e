"""The registry, which loads metrics of simllm and of installed packages by name.

A package adds a metric with an entry point in the group `simllm.metrics`. The entry point names a
function that takes the text after `=` in `name=argument` (empty without one) and returns a `Metric`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Any

import simllm
from simllm.errors import InputError
from simllm.metrics import text
from simllm.metrics.protocol import Example, Floats, FunctionMetric, Metric, PlainScores, pair_scores
from simllm.metrics.score_cache import CachedMetric
from simllm.metrics.text import BASELINES, UnavailableError

GROUP = "simllm.metrics"  # group of entry points
BUILT_IN = ("simllm", "simllm-same", *BASELINES)
_COLUMN = "column"


@dataclass(frozen=True)
class ColumnMetric:
    """A metric whose scores are stored with rated pairs, in the column `column`."""

    name: str
    column: str

    @property
    def signature(self) -> str:
        """The name; nothing else is known about these scores."""
        return self.name

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Raise UnavailableError, because only the rated pairs have scores."""
        raise UnavailableError("a column holds the scores of rated pairs, and no others")


def names() -> tuple[str, ...]:
    """Return the names of all metrics: first those of simllm, then those of installed packages."""
    return (*BUILT_IN, *sorted(_entry_points()))


def check_names(chosen: Iterable[str]) -> None:
    """Raise InputError for a name that no metric has; arguments after `=` are not checked."""
    for name in chosen:
        if (kind := name.partition("=")[0]) not in (*names(), _COLUMN):
            raise InputError(f"metric {kind!r}: expected one of {', '.join(names())}, column=NAME")


def load(name: str, model: str | os.PathLike[str] | None = None) -> Metric:
    """Load a metric.

    Args:
        name: `name` or `name=argument`. `simllm=FOLDER` is the learned metric with another model, and
            `simllm-same` its probability of the same meaning; `column=NAME` means scores that are
            stored with rated pairs.
        model: The model folder of `simllm` and `simllm-same`; by default the included one.

    Returns:
        The metric. Metrics that come with simllm cache their scores.

    Raises:
        InputError: No metric has this name.
        UnavailableError: A library, data or the argument is missing; the message says what to do.
    """
    check_names([name])
    kind, _, argument = name.partition("=")
    if kind == _COLUMN:
        if not argument:
            raise UnavailableError("name it as column=NAME")
        return ColumnMetric(name, argument)
    if kind in ("simllm", "simllm-same"):
        # Imported by name, because `simllm.metric` imports this package.
        learned = import_module("simllm.metric").SimLLM(argument or model)
        return model_metric(name, learned) if kind == "simllm" else same_metric(name, learned)
    if kind in BASELINES:
        return _baseline(name, kind, argument)
    metric: Metric = _entry_points()[kind].load()(argument)
    return metric


def load_all(
    chosen: Iterable[str], model: str | os.PathLike[str] | None = None
) -> tuple[list[Metric], dict[str, str]]:
    """Load several metrics, and skip those that are not available.

    Args:
        chosen: Their names, as for `load`.
        model: The model folder of `simllm`; by default the included one.

    Returns:
        The available metrics; and for each other one, by its name, what to do to make it available.

    Raises:
        InputError: No metric has one of the names, or none is available.
    """
    chosen = list(dict.fromkeys(chosen))
    check_names(chosen)
    metrics, missing = [], {}
    for name in chosen:
        try:
            metrics.append(load(name, model))
        except UnavailableError as error:
            missing[name] = str(error)
    if not metrics:
        raise InputError(
            "; ".join(f"{name}: {remedy}" for name, remedy in missing.items()) or "no metric is named"
        )
    return metrics, missing


def model_metric(name: str, learned: Metric) -> Metric:
    """Return a cached metric with a given name, which scores like a loaded `SimLLM`."""
    return CachedMetric(FunctionMetric(name, learned.signature, partial(pair_scores, learned)))


def same_metric(name: str, learned: Any) -> Metric:
    """Return a cached metric whose scores are probabilities of the same meaning.

    Args:
        name: The name of the metric.
        learned: A `SimLLM`, which this package cannot import.

    Raises:
        UnavailableError: The model has no meaning head.
    """
    if learned.no_scores.same is None:
        raise UnavailableError("the model folder has no meaning head")

    def compute(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        return learned.score(candidates, references).on("same")

    return CachedMetric(FunctionMetric(name, f"same|{learned.signature}", compute))


def _baseline(name: str, kind: str, argument: str) -> Metric:
    """Return a cached baseline; its signature has the versions of its libraries and hashes of its data."""
    compute = text.baseline(kind, argument)
    libraries = [f"{library}:{version(library)}" for library in BASELINES[kind].libraries]
    data = [f"{what}:{_digest(path)}" for what, path in text.data(kind, argument).items()]
    signature = "|".join([kind, *data, *libraries, f"version:{simllm.__version__}"])
    return CachedMetric(FunctionMetric(name, signature, compute))


def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name; they cannot replace metrics of simllm."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def _digest(path: Path) -> str:
    """Return the first 12 hex digits of the SHA-256 of a file, or of all files in a folder.

    Raises:
        InputError: A file cannot be read.
    """
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        try:
            with file.open("rb") as data:
                content = hashlib.file_digest(data, "sha256").digest()
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        digest.update(os.fsencode(file.relative_to(path)) + content)
    return digest.hexdigest()[:12]
