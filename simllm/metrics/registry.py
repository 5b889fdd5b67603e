"""The metric registry: it loads metrics of simllm and of installed packages by name.

A package adds a metric with an entry point in the group `simllm.metrics`. The entry point names a function
that takes one argument, a text, and returns a `Metric`. The text is what the user wrote after `=`, such as
"large" in `mymetric=large`; it is empty if the user wrote only the name.
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
from simllm.metrics.code.built_in_code_metrics import CODE_METRICS
from simllm.metrics.metric_interface import (
    Example,
    FunctionMetric,
    Metric,
    PlainScores,
    UnavailableError,
)
from simllm.metrics.score_cache import CachedMetric
from simllm.metrics.text import built_in_text_metrics
from simllm.metrics.text.built_in_text_metrics import BASELINES
from simllm.metrics.text.readable_texts import POLICY
from simllm.optional_packages import missing_package

GROUP = "simllm.metrics"  # group of entry points
_LEARNED = frozenset({"simllm", "simllm-same"})  # metrics that use the model of `load`
BUILT_IN = ("simllm", "simllm-same", *BASELINES)
CODE = tuple(CODE_METRICS)  # metrics for code; `names` leaves them out, because they do not score texts
_COLUMN = "column"


@dataclass(frozen=True)
class ColumnMetric:
    """Placeholder for a metric whose scores are already stored in a file with human ratings.

    The evaluation reads the scores from a column of this file. The placeholder cannot compute scores.

    Attributes:
        name: The name of the metric: `column=` and the name of the column.
        column: The name of the column that has the scores.
    """

    name: str
    column: str

    @property
    def signature(self) -> str:
        """The name of the metric, such as "column=bleu", because nothing else is known about its scores.

        For other metrics, the signature is a text that names everything that can change a score. The scores
        of this metric were computed elsewhere. They are only read from a column of a file.
        """
        return self.name

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Raise UnavailableError, because the scores of this metric are stored in a file, not computed.

        The evaluation reads the stored scores from a column of a file with human ratings.
        """
        raise UnavailableError("a column holds the scores of rated pairs, and no others")


def names() -> tuple[str, ...]:
    """List the names of all metrics for texts: first those of simllm, then those that other packages add."""
    return (*BUILT_IN, *sorted(_entry_points()))


def check_names(chosen: Iterable[str]) -> None:
    """Check the names of metrics; raise InputError if a name belongs to no metric.

    Args:
        chosen: The names to check: `name` or `name=argument`. The argument is not checked.
    """
    for name in chosen:
        if (kind := name.partition("=")[0]) not in (*names(), *CODE, _COLUMN):
            raise InputError(f"metric {kind!r}: expected one of {', '.join((*names(), *CODE))}, column=NAME")


def is_code_metric(name: str) -> bool:
    """Return whether a metric scores code instead of texts.

    Args:
        name: The name of the metric: `name` or `name=argument`.
    """
    return name.partition("=")[0] in CODE


def needs_source(name: str) -> bool:
    """Return whether a metric needs the source, which is the code before it was edited.

    Args:
        name: The name of the metric: `name` or `name=argument`.
    """
    return is_code_metric(name) and CODE_METRICS[name.partition("=")[0]].needs_source


def lower_is_better(name: str) -> bool:
    """Return whether lower scores of a metric are better, as for a metric of the size of an edit.

    Args:
        name: The name of the metric: `name` or `name=argument`.
    """
    return is_code_metric(name) and CODE_METRICS[name.partition("=")[0]].lower_is_better


def uses_model(name: str) -> bool:
    """Return whether a metric uses the argument `model` (a model folder) of the function `load`.

    The metrics `simllm` and `simllm-same` use this folder. `simllm=FOLDER` uses the model in FOLDER instead.

    Args:
        name: The name of the metric: `name` or `name=argument`.
    """
    kind, _, argument = name.partition("=")
    return kind in _LEARNED and not argument


def load(name: str, model: str | os.PathLike[str] | None = None) -> Metric:
    """Load a metric by its name.

    Args:
        name: `name` or `name=argument`, such as `bleu` or `word-vectors=CORPUS`. Three names are special.
            `simllm=FOLDER` is the learned metric with the model in FOLDER. `simllm-same` is the learned
            metric's probability that two texts have the same meaning. `column=NAME` is a placeholder for
            scores that are already stored in a column of a file with human ratings.
        model: The model folder for `simllm` and `simllm-same`; by default the model that comes with
            the package.

    Returns:
        The metric. The learned metric and simllm's other metrics for texts, such as `bleu`, cache their
        scores on disk.

    Raises:
        InputError: No metric has this name, a metric for code does not accept the argument, or a file cannot
            be read.
        UnavailableError: The metric cannot be loaded, for example because a library, a data file or a
            required argument is missing. The message says what to do.
    """
    check_names([name])
    kind, _, argument = name.partition("=")
    if kind == _COLUMN:
        if not argument:
            raise UnavailableError("name it as column=NAME")
        return ColumnMetric(name, argument)
    if kind in _LEARNED:
        # Imported by name, because `simllm.metric` imports this package.
        learned = import_module("simllm.metric").SimLLM(argument or model)
        return model_metric(name, learned) if kind == "simllm" else same_metric(name, learned)
    if kind in BASELINES:
        return _baseline(name, kind, argument)
    if kind in CODE:
        return _code_metric(name)
    metric: Metric = _entry_points()[kind].load()(argument)
    return metric


def load_all(
    chosen: Iterable[str], model: str | os.PathLike[str] | None = None
) -> tuple[list[Metric], dict[str, str]]:
    """Load several metrics, and skip those that are not available on this machine.

    Args:
        chosen: The names of the metrics: `name` or `name=argument`.
        model: The model folder for `simllm` and `simllm-same`; by default the model that comes with
            the package.

    Returns:
        A list of the available metrics; and a dict from the name of each unavailable metric to a text that
        says how to make the metric available.

    Raises:
        InputError: A name belongs to no metric, or no metric is available.
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
    """Return a loaded metric under a new name, and with a cache on disk for its scores.

    Args:
        name: The new name, such as "simllm=FOLDER".
        learned: The loaded metric, usually a `SimLLM`.
    """
    return CachedMetric(_LearnedMetric(name, learned.signature, learned))


@dataclass(frozen=True)
class _LearnedMetric:
    """The learned metric under the name of the registry, with one of its two scores."""

    name: str
    signature: str
    learned: Any
    scale: str = ""

    def score(self, examples: Sequence[Example]) -> PlainScores:
        scores = self.learned.score(examples)
        values = scores.on(self.scale) if self.scale else scores.values
        return PlainScores(values, self.signature, getattr(scores, "warnings", ()))


def same_metric(name: str, learned: Any) -> Metric:
    """Make a metric whose score is the probability that two texts have the same meaning.

    Its scores are cached on disk.

    Args:
        name: The name of the new metric.
        learned: A `SimLLM`. Its type is `Any`, because an import of `SimLLM` here would be circular.

    Raises:
        UnavailableError: The model lacks the meaning head, the network that predicts this probability.
    """
    if learned.no_scores.same is None:
        raise UnavailableError("the model folder has no meaning head")
    return CachedMetric(_LearnedMetric(name, f"same|{learned.signature}", learned, "same"))


def _baseline(name: str, kind: str, argument: str) -> Metric:
    """Load a baseline: a known metric for texts, such as BLEU, with which the learned metric is compared.

    The loaded metric stores its scores on disk, and reuses them. Its signature is a text that names
    everything that can change a score, such as the versions of its libraries and hashes of its data files.

    Args:
        name: The full name of the metric: `kind` or `kind=argument`.
        kind: The name of the baseline, such as "bertscore".
        argument: The text after `=`, such as a model folder; empty if there is none.
    """
    scorer = built_in_text_metrics.baseline(kind, argument)
    libraries = [f"{library}:{version(library)}" for library in BASELINES[kind].libraries]
    data = [f"{what}:{_digest(path)}" for what, path in built_in_text_metrics.data(kind, argument).items()]
    signature = "|".join([kind, *data, POLICY, *libraries, f"version:{simllm.__version__}"])
    return CachedMetric(FunctionMetric(name, signature, scorer, partial(scorer.warnings, name)))


def _code_metric(name: str) -> Metric:
    """Load a metric for code by its name.

    Args:
        name: The name of the metric, such as "lemod". An argument may follow, as in "lemod=multiset".

    Raises:
        InputError: The metric does not accept the argument, or the argument is a file that cannot be read.
        UnavailableError: A library that metrics for code need is not installed (pip extra `code` of simllm).
    """
    try:
        metric: Metric = import_module("simllm.metrics.code.code_metric").load(name)
    except ModuleNotFoundError as error:
        raise UnavailableError(missing_package(error.name, "code")) from None
    return metric


def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points by which installed packages add metrics, keyed by the name of the metric.

    An entry point with the name of one of simllm's own metrics is left out, so that no package can replace
    such a metric.
    """
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in (*BUILT_IN, *CODE)}


def _digest(path: Path) -> str:
    """Compute a hash of the content of a file, or of all files in a folder.

    Args:
        path: The file or folder.

    Returns:
        The first 12 hex digits of a SHA-256.

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
