"""A study of code edits: systems compared by metrics, and by the items that they solve."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.analysis.comparison import Comparison, about_few_items, compare_scores
from simllm.analysis.comparison import System as Mean
from simllm.array_types import Floats
from simllm.code.line_diff import line_edit
from simllm.errors import InputError
from simllm.evaluation.code_edits.agreement import Agreement, measure_agreement
from simllm.evaluation.code_edits.items import CodeFields, CodeItem, describe_replies, read_items
from simllm.io import output_file
from simllm.io.tables import label
from simllm.metrics import registry
from simllm.metrics.code.similarity import Edits, edits, exact_matches
from simllm.metrics.interface import Example
from simllm.stats import resampling
from simllm.stats.classification import average_pass_rate, pass_at_k
from simllm.stats.resampling import SEED

UNCHANGED = "unchanged source"  # the name of the baseline, a system that returns every source unchanged
METRICS = ("exact-match", "lemod", "bleu-diff", "crystalbleu-diff", "codebleu", "tree-similarity", "rpsr")
_EASY = 2  # largest number of lines that the reference of an easy item inserts
_SPACE = re.compile(r"\s+")


@dataclass
class Attempt:
    """A candidate of one system for one item.

    Attributes:
        example: The candidate, with source and reference.
        has_code: False if the candidate is empty because the system's reply had no code.
        is_ambiguous: True if several blocks of code in the system's reply fit equally well.
        is_tested: Whether the line has a test result.
        passed: Whether the candidate solves the item.
    """

    example: Example
    has_code: bool = True
    is_ambiguous: bool = False
    is_tested: bool = False
    passed: bool = False


@dataclass
class System:
    """The candidates of one system, and their scores.

    Attributes:
        name: The name of the system; the name of a variant follows after a slash.
        attempts: One or more candidates by the id of the item.
        scores: For each metric, (n,) scores of the items: the mean over an item's candidates; NaN without
            any.
    """

    name: str
    family: str
    attempts: dict[str, list[Attempt]]
    scores: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupMeans:
    """The means of systems on some of the items, with 95% intervals.

    Attributes:
        n: The number of items for which every system has a score.
        systems: A mean for each system, in the order of the study.
    """

    n: int
    systems: list[Mean]


@dataclass(frozen=True)
class EditStudy:
    """The results of a study of code edits.

    Attributes:
        ids: The ids of the n items.
        systems: The systems. The last one is the baseline.
        comparisons: For each metric, means with intervals and paired tests of the systems, on the items for
            which every system has a score.
        summaries: Further numbers of each system, such as "lines inserted".
        coverage: The numbers of items: "items" (all), and those that the systems other than the baseline
            solve: "by all", "by at least one" and "by exactly one".
        best: For each family with several variants and each metric, the mean score if the best variant were
            chosen for each item.
        easy: For each item, whether the reference inserts at most two lines into the source.
        replies: Counts and names of failed requests, replies without code, and ambiguous replies.
        groups: For "easy" and "hard" items, each metric's means with intervals; a group without items, or
            without scores by a metric, is left out.
        agreement: Correlations between the metrics, and with exact match, without the baseline.
    """

    ids: list[str]
    systems: list[System]
    comparisons: dict[str, Comparison]
    summaries: dict[str, dict[str, float | None]]
    coverage: dict[str, int]
    best: dict[str, dict[str, float]]
    easy: list[bool]
    replies: dict[str, Any]
    groups: dict[str, dict[str, GroupMeans]]
    agreement: Agreement

    @cached_property
    def warnings(self) -> list[str]:
        """Reasons why the figures mean little, such as too few items."""
        found = about_few_items(self.comparisons)
        if self.agreement.are_matches_equal and len(self.ids) >= resampling.LEAST_ITEMS:
            found.append("no correlation with exact match: all edits equal their references, or none does")
        return found


def run_study(
    paths: Sequence[Path],
    names: Sequence[str] = METRICS,
    top: Sequence[int] = (1,),
    language: str | None = None,
    as_published: bool = False,
) -> EditStudy:
    """Compare systems by metrics (`names`), and by solved items, also as TOP-k for each k of `top`.

    `paths` are JSON-lines files (see `read_items`); each line has a candidate, and the `id` and the
    `source` of its item, and perhaps `system` (by default, the name of the file), `variant` and `passed`.
    `language` is that of lines without one. `as_published` reads replies like the published code of Sheikhaei
    et al.
    """
    output_file.check_different(paths)
    systems, replies = _read_systems(paths, language, as_published)
    registry.check_names(names)
    for name in names:
        if not registry.is_code_metric(name):
            raise InputError(f"metric {name!r}: expected a metric for code")
    ids = list(systems[0].attempts)
    systems.append(_unchanged(systems[0]))
    _judge_untested(systems)
    # The baseline is scored like a system, but does not count where systems are counted.
    real = systems[:-1]
    for system in real:
        pass_at_k([[a.passed for a in system.attempts[id_]] for id_ in ids], max(top))  # for its error
    metrics = [registry.load(name) for name in names]
    for metric in metrics:
        _score(systems, metric, ids)
    # Any system would do: all have the same sources and references.
    first = [real[0].attempts[id_][0].example for id_ in ids]
    easy = [inserted_lines(example) <= _EASY for example in first]
    solved = np.array([[any(a.passed for a in system.attempts[id_]) for id_ in ids] for system in real])
    # How many systems solve each item.
    times = solved.sum(axis=0)
    return EditStudy(
        ids,
        systems,
        {name: _compare(systems, name) for name in names},
        {
            system.name: _summarize(system, metrics, ids, easy, top if system in real else ())
            for system in systems
        },
        {
            "items": len(ids),
            "by all": int((times == len(real)).sum()),
            "by at least one": int((times > 0).sum()),
            "by exactly one": int((times == 1).sum()),
        },
        dict(_best_variants(real, names)),
        easy,
        replies,
        _group_means(systems, names, np.array(easy)),
        _measure_agreement(real, names, ids),
    )


def _read_systems(
    paths: Sequence[Path], language: str | None, as_published: bool
) -> tuple[list[System], dict[str, Any]]:
    """Read the candidates of all systems, which must have the same items, and describe their replies."""
    systems: dict[str, System] = {}
    items: list[CodeItem] = []
    named_by_file: dict[str, Path] = {}
    for path in paths:
        name_of_file = label(Path(path.name.removesuffix(".gz")).stem)
        for item in read_items(path, CodeFields(id="id"), language, True, as_published):
            family = label(str(item.row["system"])) if "system" in item.row else name_of_file
            # Two files of one name in different folders would become one system.
            if "system" not in item.row and named_by_file.setdefault(family, path) != path:
                other = named_by_file[family]
                raise InputError(f"{other} and {path}: name the systems by `system` in each line")
            name = f"{family}/{label(str(item.row['variant']))}" if "variant" in item.row else family
            system = systems.setdefault(name, System(name, family, {}))
            attempts = system.attempts.setdefault(str(item.id), [])
            attempts.append(_attempt(item))
            items.append(replace(item, id=f"{item.id} of {name}"))
            _check_same(attempts[0].example, attempts[-1].example, f"{item.where}: item {item.id}")
    first, *others = systems.values()
    for system in others:
        if different := sorted(first.attempts.keys() ^ system.attempts.keys()):
            lacking = system if different[0] in first.attempts else first
            raise InputError(f"system {lacking.name} has no item {different[0]}; all need the same items")
        for id_, attempts in first.attempts.items():
            where = f"item {id_} of {system.name}"
            _check_same(attempts[0].example, system.attempts[id_][0].example, where)
    if UNCHANGED in systems:
        raise InputError(f"system {UNCHANGED!r}: this name is taken by the baseline")
    return list(systems.values()), describe_replies(items)


def _check_same(known: Example, other: Example, where: str) -> None:
    if (known.source, known.reference) != (other.source, other.reference):
        raise InputError(f"{where}: differs in source or reference from the first candidate of this item")


def _attempt(item: CodeItem) -> Attempt:
    passed: Any = item.row.get("passed")
    if passed not in (None, 0, 1):
        raise InputError(f'{item.where}: expected true or false under "passed"')
    return Attempt(item.example, item.has_code, item.is_ambiguous, passed is not None, bool(passed))


def _unchanged(system: System) -> System:
    """Make the baseline, with the items of any system."""
    attempts = {}
    for id_, (one, *_) in system.attempts.items():
        old = one.example
        example = Example(old.source or "", old.reference, old.source, old.language)
        attempts[id_] = [Attempt(example)]
    return System(UNCHANGED, UNCHANGED, attempts)


def _judge_untested(systems: Sequence[System]) -> None:
    """Let attempts without a test result pass if they equal the reference."""
    flat = [attempt for system in systems for each in system.attempts.values() for attempt in each]
    untested = [attempt for attempt in flat if not attempt.is_tested]
    matches = exact_matches([attempt.example for attempt in untested])
    for attempt, value in zip(untested, matches, strict=True):
        attempt.passed = value == 1


def _score(systems: Sequence[System], metric: Any, ids: Sequence[str]) -> None:
    """Score all candidates of all systems by one metric, and store the mean of each item."""
    flat = [
        (system, id_, attempt.example)
        for system in systems
        for id_ in ids
        for attempt in system.attempts[id_]
    ]
    # All candidates at once: metrics share work between them, and work in parallel.
    values = metric.score([example for *_, example in flat]).values
    rows = zip(flat, values.tolist(), strict=True)
    for system in systems:
        system.scores[metric.name] = np.full(len(ids), np.nan)
    place = {id_: number for number, id_ in enumerate(ids)}
    # The candidates of one item are adjacent, as `groupby` needs.
    for _, group in groupby(rows, key=lambda row: (row[0][0].name, row[0][1])):
        known = [(system, id_, value) for (system, id_, _), value in group if not math.isnan(value)]
        if known:
            system, id_, _ = known[0]
            system.scores[metric.name][place[id_]] = np.mean([value for *_, value in known])


def _compare(systems: Sequence[System], name: str) -> Comparison:
    """Compare the systems by one metric, on the items for which every system has a score."""
    scores = {system.name: system.scores[name] for system in systems}
    # Systems are compared in pairs, on the same items.
    known = ~np.isnan(np.stack(list(scores.values()))).any(axis=0)
    if not known.any():
        raise InputError(f"metric {name}: no item has a score of every system")
    return compare_scores({system: values[known] for system, values in scores.items()}, name)


def _group_means(
    systems: Sequence[System], names: Sequence[str], easy: NDArray[np.bool_]
) -> dict[str, dict[str, GroupMeans]]:
    """Compute `EditStudy.groups`."""
    groups: dict[str, dict[str, GroupMeans]] = {}
    for group, chosen in (("easy", easy), ("hard", ~easy)):
        for name in names:
            scores = np.stack([system.scores[name] for system in systems])
            scores = scores[:, chosen & ~np.isnan(scores).any(axis=0)]
            n = scores.shape[1]
            if not n:
                continue
            drawn = resampling.resampled_means(scores, np.random.default_rng(SEED))
            means = [
                Mean(system.name, float(own.mean()), *resampling.interval(drawn[:, place], n))
                for place, (system, own) in enumerate(zip(systems, scores, strict=True))
            ]
            groups.setdefault(group, {})[name] = GroupMeans(n, means)
    return groups


def _measure_agreement(systems: Sequence[System], names: Sequence[str], ids: Sequence[str]) -> Agreement:
    """Compute `EditStudy.agreement` of the systems without the baseline."""
    scores = {name: np.stack([system.scores[name] for system in systems]) for name in names}
    flat = [attempt.example for system in systems for id_ in ids for attempt in system.attempts[id_]]
    matches = iter(exact_matches(flat))
    shares = [[np.mean([next(matches) for _ in system.attempts[id_]]) for id_ in ids] for system in systems]
    return measure_agreement(scores, np.array(shares))


def _summarize(
    system: System, metrics: Sequence[Any], ids: Sequence[str], easy: Sequence[bool], top: Sequence[int]
) -> dict[str, float | None]:
    """Compute the numbers of one system for `EditStudy.summaries`; None if one is not defined."""
    attempts = [system.attempts[id_] for id_ in ids]
    flat = [attempt for each in attempts for attempt in each]
    found = [edits(attempt.example) for attempt in flat]
    items = [[attempt.example for attempt in each] for each in attempts]
    corpus = {metric.name: metric.corpus_value(items) for metric in metrics}
    passed = [[attempt.passed for attempt in each] for each in attempts]
    rates = [average_pass_rate([each]) for each in passed]
    groups = {"easy": easy, "hard": [not each for each in easy]}
    return {
        "AVG": average_pass_rate(passed),
        **{f"TOP-{k}": pass_at_k(passed, k) for k in top},
        **{
            f"solved, {name}": float(np.mean(np.array(rates)[chosen])) if any(chosen) else None
            for name, chosen in groups.items()
        },
        "lines deleted": float(np.mean([_count(edit, "-") for edit in found])),
        "lines inserted": float(np.mean([_count(edit, "+") for edit in found])),
        **{f"corpus {name}": value for name, value in corpus.items() if value is not None},
        "without code": float(sum(not attempt.has_code for attempt in flat)),
        "ambiguous replies": float(sum(attempt.is_ambiguous for attempt in flat)),
    }


def _count(edit: Edits, sign: str) -> int:
    return sum(line.startswith(sign) for line in edit.candidate)


def inserted_lines(example: Example) -> int:
    """Count the lines that the reference inserts into the source, but for white space and empty lines."""
    source, reference = (
        # Lines that differ only in white space are equal then, so that the diff leaves them out.
        [_SPACE.sub("", line) for line in text.splitlines()]
        for text in (example.source or "", example.reference or "")
    )
    return sum(line.startswith("+") and line != "+" for line in line_edit(source, reference))


def _best_variants(systems: Sequence[System], names: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield `EditStudy.best` for each family with several variants."""
    for family in dict.fromkeys(system.family for system in systems):
        variants = [system for system in systems if system.family == family]
        if len(variants) > 1:
            best = {}
            for name in names:
                scores = np.stack([system.scores[name] for system in variants])
                # nanmax would warn about items without any score.
                scores = scores[:, ~np.isnan(scores).all(axis=0)]
                choose = np.nanmin if registry.lower_is_better(name) else np.nanmax
                best[name] = float(choose(scores, axis=0).mean()) if scores.size else math.nan
            yield family, best
