"""The metric registry: it loads metrics of simllm and of installed packages by name.

A package adds a metric with an entry point in the group `simllm.metrics`. The entry point names a function
that takes one text and returns a `Metric`. The text is the argument that the user wrote after `=`, such as
"large" in `mymetric=large`; it is empty if the user wrote only the name.

Without a package, `module:function` or `file.py:function` names a function of n candidates and n references
that returns n scores, higher for more similar texts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module, util
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import numpy as np

import simllm
from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io.packages import missing_package, require_llm_extra
from simllm.metrics import table
from simllm.metrics.cache import CachedMetric
from simllm.metrics.interface import Example, FunctionMetric, Metric, PlainScores, UnavailableError
from simllm.metrics.table import METRICS, MetricSpec
from simllm.metrics.text.readable_texts import POLICY, TextScorer

GROUP = "simllm.metrics"  # group of entry points
# Metrics that use the model of `load`.
_LEARNED = dict.fromkeys(("simllm", "simllm-same", "simllm-graded"), MetricSpec(""))
_AGAINST = {"simllm-code": "code", "simllm-fits": "code", "simllm-both": "both"}
_LEARNED |= dict.fromkeys(_AGAINST, MetricSpec("", needs_source=True))
BUILT_IN = ("simllm", "simllm-same", *table.TEXT)
# Metrics for code; `names` leaves them out, because they do not score texts.
CODE = tuple(table.CODE)
_COLUMN = "column"
_OF_EVAL = ("nltk", "rouge_score", "sacrebleu", "scipy", "sklearn")  # modules that the extra eval installs
_OTHER = MetricSpec("")  # of columns, and of metrics of other packages


@dataclass(frozen=True)
class MetricName:
    """The name of a metric as a user writes it: `kind` or `kind=argument`."""

    whole: str
    kind: str
    argument: str

    @property
    def spec(self) -> MetricSpec:
        """The row of the table; an empty row for metrics of other packages."""
        return (METRICS | _LEARNED).get(self.kind, _OTHER)


def parse(name: str) -> MetricName:
    """Parse the name of a metric, which need not exist."""
    kind, _, argument = name.partition("=")
    return MetricName(name, kind, argument)


@dataclass(frozen=True)
class ColumnMetric:
    """Placeholder for a metric whose scores are stored in a column of a file with human ratings.

    The evaluation reads the scores from this column. The placeholder cannot compute scores.

    Attributes:
        name: `column=` and the name of the column.
        column: The name of the column.
    """

    name: str
    column: str

    @property
    def signature(self) -> str:
        """The name of the metric, because nothing else is known about scores that were computed elsewhere."""
        return self.name

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Raise UnavailableError, because the scores are stored, not computed."""
        raise UnavailableError("a column holds the scores of rated pairs, and no others")


def names() -> tuple[str, ...]:
    """List the names of all metrics for texts: first those of simllm, then those that other packages add."""
    return (*BUILT_IN, *sorted(_entry_points()))


def check_names(chosen: Iterable[str]) -> None:
    """Raise InputError if a name, `name` or `name=argument`, belongs to no metric; ignore the argument."""
    for name in map(parse, chosen):
        if _is_function(name.whole):
            continue
        if name.kind not in (*METRICS, *_LEARNED, _COLUMN) and name.kind not in _entry_points():
            learned = (each for each in _LEARNED if each not in BUILT_IN)
            known = ", ".join((*names(), *learned, *CODE, "judge=FILE"))
            raise InputError(f"metric {name.kind!r}: expected one of {known}, column=NAME, module:function")


def is_code_metric(name: str) -> bool:
    """Return whether a metric (`name` or `name=argument`) scores code instead of texts."""
    return parse(name).spec.for_code


def is_judge(name: str) -> bool:
    """Return whether a metric (`name` or `name=argument`) asks a language model."""
    return parse(name).spec.is_judge


def needs_source(name: str) -> bool:
    """Return whether a metric (`name` or `name=argument`) needs the source: the code before it was edited,
    or for a judge the code that a text describes.
    """
    parsed = parse(name)
    if parsed.spec.is_judge and parsed.argument:
        return bool(resolve_name("simllm.metrics.judge.pointwise:reads_source")(parsed.argument))
    return parsed.spec.needs_source


def needs_reference(name: str) -> bool:
    """Return whether a judge (`judge=FILE`) reads the reference; other metrics need a second text."""
    parsed = parse(name)
    if parsed.spec.is_judge and parsed.argument:
        return bool(resolve_name("simllm.metrics.judge.pointwise:reads_reference")(parsed.argument))
    return not parsed.spec.needs_source


def pairwise_judge(name: str) -> Any:
    """Load a judge that compares systems (see `simllm.metrics.judge.pairwise`); None for other metrics."""
    parsed = parse(name)
    if not parsed.spec.is_judge or not parsed.argument:
        return None
    with require_llm_extra():
        return resolve_name("simllm.metrics.judge.pairwise:load")(parsed.argument)


def may_lack_scores(name: str) -> bool:
    """Return whether a metric may give NaN to single examples, which are then left out."""
    return is_code_metric(name) or is_judge(name)


def lower_is_better(name: str) -> bool:
    """Return whether lower scores of a metric are better, as for a metric of the size of an edit."""
    return parse(name).spec.lower_is_better


def uses_model(name: str) -> bool:
    """Return whether a metric uses the argument `model` (a model folder) of the function `load`.

    The metrics `simllm` and `simllm-same` use this folder; `simllm=FOLDER` has a model of its own.
    """
    return parse(name).kind in _LEARNED and not parse(name).argument


def divides_texts(name: str) -> bool:
    """Return whether a metric divides texts into sentences, whose ends cleaning would hide."""
    return parse(name).kind in _LEARNED


def load(name: str, model: str | os.PathLike[str] | None = None) -> Metric:
    """Load a metric by its name.

    Args:
        name: `name` or `name=argument`, such as `bleu` or `word-vectors=CORPUS`. Some names are special.
            `simllm=FOLDER` is the learned metric with the model in FOLDER. `simllm-same` is the learned
            metric's probability that two texts have the same meaning. `simllm-code` scores a text against
            the code that it describes, and `simllm-both` against code and reference; `simllm-fits` is the
            probability that it fits the code. `column=NAME` is a placeholder for scores that are stored in a
            column of a file with human ratings. `module:function` and `file.py:function` are functions of
            the user, which are imported and called.
        model: The model folder for `simllm` and `simllm-same`; None means the model that comes with the
            package.

    Returns:
        The metric. The learned metric and simllm's other metrics for texts cache their scores on disk.

    Raises:
        InputError: No metric has this name, a metric for code does not accept the argument, or a file cannot
            be read.
        UnavailableError: A library, a data file or a required argument is missing. The message says what to
            do.
    """
    check_names([name])
    if _is_function(name):
        return _load_function(name)
    parsed = parse(name)
    if parsed.kind in METRICS:
        return _built_in(parsed)
    if parsed.kind == _COLUMN:
        if not parsed.argument:
            raise UnavailableError("name it as column=NAME")
        return ColumnMetric(name, parsed.argument)
    if parsed.kind in _LEARNED:
        # Imported by name, because `simllm.metric` imports this package.
        learned = import_module("simllm.metric").SimLLM(parsed.argument or model)
        output = parsed.kind.removeprefix("simllm").removeprefix("-")
        if against := _AGAINST.get(parsed.kind):
            if output == "fits" and learned.code_reader.model is None:
                raise UnavailableError("no model that reads code belongs to this model")
            signature = learned.signature_against(against)
            if output == "fits":
                return CachedMetric(_LearnedMetric(name, f"fits|{signature}", learned, output, against))
            return CachedMetric(_LearnedMetric(name, signature, learned, against=against))
        return head_metric(name, learned, output) if output else model_metric(name, learned)
    metric: Metric = _entry_points()[parsed.kind].load()(parsed.argument)
    return metric


def _built_in(name: MetricName) -> Metric:
    """Load a metric of the table; those for texts get a cache."""
    spec = name.spec
    if not spec.allows(name.argument):
        if spec.for_code:
            expected = f"{name.kind}={spec.argument} or {name.kind}" if spec.argument else name.kind
            raise InputError(f"metric {name.whole!r}: name it as {expected}")
        expected = f"{name.kind}={spec.argument}" if spec.argument else f"{name.kind} alone"
        raise UnavailableError(f"name it as {expected}")
    try:
        scorer = spec.scorer(name.kind, name.argument)
        if spec.is_judge:  # its replies are kept, so that its scores need no cache
            judge: Metric = scorer
            return judge
        if spec.for_code:
            # Imported by name, because metrics for code need the package tree-sitter, which is optional.
            code_metric = import_module("simllm.metrics.code.code_metric")
            metric: Metric = code_metric.CodeMetric(name.whole, scorer, spec.needs_source)
            return metric
    except ModuleNotFoundError as error:
        if spec.for_code or spec.is_judge:
            extra = "code" if spec.for_code else "llm"
            raise UnavailableError(missing_package(error.name, extra)) from None
        module = (error.name or "").partition(".")[0]
        package = {"sklearn": "scikit-learn"}.get(module, module.replace("_", "-"))
        if module in _OF_EVAL:
            raise UnavailableError(missing_package(package, "eval")) from None
        raise UnavailableError(f"{package} is not installed: pip install {package}") from None
    libraries = [f"{library}:{version(library)}" for library in spec.libraries]
    data = [f"{what}:{_digest(path)}" for what, path in scorer.data.items()]
    # Libraries and data files change scores without a new version of simllm, and stored scores are reused
    # only under an equal signature.
    signature = "|".join([name.kind, *data, POLICY, *libraries, f"version:{simllm.__version__}"])
    warnings = partial(scorer.warnings, name.whole)
    return CachedMetric(FunctionMetric(name.whole, signature, scorer, warnings))


def load_all(
    chosen: Iterable[str] | None, model: str | os.PathLike[str] | None = None
) -> tuple[list[Metric], dict[str, str]]:
    """Load several metrics, and skip those that are not available on this machine.

    Args:
        chosen: The names of the metrics: `name` or `name=argument`; None means all metrics for texts.
        model: The model folder for `simllm` and `simllm-same`; None means the model that comes with the
            package.

    Returns:
        The available metrics; and a dict from the name of each unavailable metric to a text that says how to
        make the metric available.

    Raises:
        InputError: A name belongs to no metric, or no metric is available.
    """
    chosen = list(dict.fromkeys(names() if chosen is None else chosen))
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
    """Return a loaded metric under a new name such as "simllm=FOLDER", with a cache of its scores on disk."""
    return CachedMetric(_LearnedMetric(name, learned.signature, learned))


@dataclass(frozen=True)
class _LearnedMetric:
    """The learned metric under the name of the registry, with one of its scores: that named `output`."""

    name: str
    signature: str
    learned: Any
    output: str = "values"
    against: str = "reference"

    def score(self, examples: Sequence[Example]) -> PlainScores:
        scores = self.learned.score(examples, against=self.against)
        return PlainScores(getattr(scores, self.output), self.signature, getattr(scores, "warnings", ()))


# `learned` is Any, because an import of `SimLLM` would be circular.
def head_metric(name: str, learned: Any, output: str = "same") -> Metric:
    """Make a metric, with a cache, from an output of the meaning head of a `SimLLM`.

    The output is `same`, the probability that two texts have the same meaning, or `graded`, the similarity as
    people grade it.

    Raises:
        UnavailableError: The model lacks the meaning head, or the head lacks this output.
    """
    if getattr(learned.no_scores, output) is None:
        what = "meaning head" if output == "same" else "graded similarity"
        raise UnavailableError(f"the model folder has no {what}")
    return CachedMetric(_LearnedMetric(name, f"{output}|{learned.signature}", learned, output))


def _is_function(name: str) -> bool:
    """Return whether a name is `module:function` or `file.py:function`."""
    place, colon, function = name.rpartition(":")
    return bool(colon and place and function.isidentifier() and "=" not in name)


def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by the name of their metric."""
    # No package can replace one of simllm's own metrics.
    own = (*_LEARNED, *METRICS)
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in own}


def _digest(path: Path) -> str:
    """Return 12 hex digits of a SHA-256 of a file, or of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    # Sorted, because the order in which a folder lists its files differs between file systems.
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        try:
            with file.open("rb") as data:
                content = hashlib.file_digest(data, "sha256").digest()
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        digest.update(os.fsencode(file.relative_to(path)) + content)
    return digest.hexdigest()[:12]


_EXPECTED = "expected a function of a list of n candidates and a list of n references that returns n numbers"


def _load_function(name: str) -> FunctionMetric:
    """Import a function of the user as a metric; scores are not cached, because they may depend on anything.

    The function never gets empty texts: as for all metrics, a pair with one scores 1 if both are empty, and
    otherwise 0. The signature has a hash of the file that defines the function.
    """
    place, _, attribute = name.rpartition(":")
    module = _module(place)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(f"metric {name}: {place} has no function {attribute}")
    source = Path(module.__file__ or "")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12] if source.is_file() else "unknown"
    scorer = TextScorer(partial(_call, name, function))
    warnings = partial(scorer.warnings, name)
    return FunctionMetric(name, f"{name}|source:{digest}|{POLICY}", scorer, warnings)


def _module(place: str) -> ModuleType:
    """Import a module by its name, or a file ending in `.py` by its path; errors of its code are one line."""
    try:
        if not place.endswith(".py"):
            # The current folder comes last, so that no file in it replaces an installed package.
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.append(str(Path.cwd()))
            return import_module(place)
        spec = util.spec_from_file_location(Path(place).stem, place)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file")
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:  # the user's code raises what it likes
        reason = str(error) or type(error).__name__
        raise UnavailableError(f"{place} cannot be imported ({reason})") from None


def _call(
    name: str, function: Callable[..., Any], candidates: Sequence[str], references: Sequence[str]
) -> Floats:
    """Call a function of the user, and check that it returns n finite numbers.

    What it prints goes to stderr, because it is no result.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            values = np.asarray(function(list(candidates), list(references)), np.float64)
    except (Exception, SystemExit) as error:
        raised = f"{type(error).__name__}: {error}"
        last = traceback.extract_tb(error.__traceback__)[-1]
        raised += f" in line {last.lineno} of {Path(last.filename).name}"
        raise InputError(f"metric {name}: raised {raised}; {_EXPECTED}") from error
    if values.shape != (len(candidates),):
        got = "one number" if values.ndim == 0 else f"an array of the shape {values.shape}"
        raise InputError(f"metric {name}: returned {got} for {len(candidates)} pairs; {_EXPECTED}")
    if not np.isfinite(values).all():
        raise InputError(f"metric {name}: returned a number that is not finite; {_EXPECTED}")
    return values
