"""A metamorphic study: its results, and warnings about figures that mean little or nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.metamorphic.judges import Judge, OutputAgreement, judge_answers, measure_agreement
from simllm.evaluation.metamorphic.likelihood import Likelihood
from simllm.evaluation.metamorphic.regression import FEW_ITEMS, CountRegression, regress_on_counts
from simllm.evaluation.metamorphic.results import (
    OUTCOMES,
    SIDES,
    Draw,
    ItemFacts,
    ItemOutcome,
    Recorded,
    count_outcomes,
    count_successes,
    read_nll,
)
from simllm.evaluation.metamorphic.success import MeanDifference, SuccessStudy, compare_means, study_success
from simllm.io import reading
from simllm.io.tables import format_count, list_some
from simllm.metrics.interface import Metric
from simllm.stats.resampling import LEAST_ITEMS, least_p
from simllm.stats.significance import holm

_SHOWN = 3  # ids that a sentence names


def warn_of_study(
    tool: str, study: SuccessStudy, crashes: Mapping[str, int], lost: Sequence[str], alpha: float
) -> Iterator[str]:
    """Yield sentences about the results of one tool.

    `crashes` counts by side. `lost` are the ids of items that are left out, because a side has no answer.
    """
    name = tool or "the tool"
    if any(crashes.values()):
        times = [format_count(number, "time") for number in crashes.values()]
        text = f"{name} crashed {times[0]} on originals and {times[1]} on variants; crashes are left out"
        if lost:
            text += f", and so {_verb(lost, 'is', 'are')} {_named(lost, 'item')}, with no answer on a side"
        yield text
    yield from _warn_of_numbers(name, study, alpha)
    if study.likelihood is not None:
        yield from _warn_of_likelihood(name, study.likelihood, len(study.outcomes))


def _warn_of_numbers(name: str, study: SuccessStudy, alpha: float) -> Iterator[str]:
    """Yield sentences about differences, intervals and p-values that the data cannot support."""
    outcomes, n = study.outcomes, len(study.outcomes)
    least = least_p(n)
    if n < LEAST_ITEMS or least > alpha:
        no_interval = "; there is no interval" if n < LEAST_ITEMS else ""
        yield (
            f"{format_count(n, 'item')} of {name} {'is' if n == 1 else 'are'} too few: p cannot fall below "
            f"{least:.2g}{no_interval}"
        )
    for side, totals in (("original", _totals(outcomes, 0)), ("variant", _totals(outcomes, 1))):
        if totals[0] == 0:
            more = "; no loss can show" if side == "original" else ""
            yield f"{name} succeeds in 0 of {format_count(totals[1], 'draw')} on {side}s{more}"
    differences = np.array([one.difference for one in outcomes])
    if n > 1 and np.ptp(differences) == 0:
        if differences[0] == 0:
            yield f"no item of {name} differs between original and variant: there is nothing to test"
        elif n >= LEAST_ITEMS:
            yield f"all items of {name} have the same difference: there is no interval"
    if uneven := [one.id for one in outcomes if one.original[1] * one.variants != one.transformed[1]]:
        yield f"{_named(uneven, 'item')} of {name} {_verb(uneven, 'has', 'have')} more draws on one side"
    if unchanged := sum(one.unchanged for one in outcomes):
        what = "the study shows noise alone" if unchanged == n else "they make the mean difference smaller"
        yield f"{unchanged:,} of {format_count(n, 'variant')} of {name} equal their originals; {what}"


def _warn_of_likelihood(name: str, found: Likelihood, items: int) -> Iterator[str]:
    if found.all.n < items:
        yield f"{items - found.all.n:,} of {format_count(items, 'item')} have no negative log-likelihood"
    if found.all.rho is None:
        yield f"the correlation of {name} with the negative log-likelihood is not defined"


def warn_of_outcomes(draws: Sequence[Draw]) -> Iterator[str]:
    """Yield a sentence if the outcomes of some draws are known, and only the success of others."""
    judged = [draw for draw in draws if draw.success is not None and not draw.arm]
    unknown = sum(draw.outcome not in OUTCOMES for draw in judged)
    if 0 < unknown < len(judged):
        yield f"{unknown:,} of {format_count(len(judged), 'draw')} have a success, but no outcome"


def warn_of_regressions(regressions: Mapping[str, CountRegression | None]) -> Iterator[str]:
    """Yield a sentence for each tool whose regression has few items."""
    for tool, found in regressions.items():
        if found is not None and found.factors and found.items < FEW_ITEMS:
            yield (
                f"the regression of {tool or 'the tool'} has {format_count(found.items, 'item')}: with fewer "
                f"than {FEW_ITEMS}, its p-values are rough, and often too small"
            )


def warn_of_items(
    items: Mapping[str, Any], variants: Iterable[Mapping[str, Any]], seen: Iterable[str]
) -> Iterator[str]:
    """Yield sentences about items that have no variant, or no results.

    `items` and `variants` are empty if they are unknown; `seen` are the ids with results.
    """
    varied = {row["id"] for row in variants}
    if varied and (bare := [name for name in items if name not in varied]):
        yield f"{_named(bare, 'item')} {_verb(bare, 'has', 'have')} no usable variant, and cannot count"
    known = set(seen)
    if missing := [name for name in items if name not in known and (name in varied or not varied)]:
        yield f"{_named(missing, 'item')} {_verb(missing, 'has', 'have')} no results"


def _totals(outcomes: Sequence[ItemOutcome], side: int) -> tuple[int, int]:
    pairs = [(one.original, one.transformed)[side] for one in outcomes]
    return sum(done for done, _ in pairs), sum(draws for _, draws in pairs)


def _named(ids: Sequence[str], what: str) -> str:
    """Return a count of items with the first ids, such as "2 items (a, b)"."""
    return f"{format_count(len(ids), what)} ({list_some(ids, _SHOWN)})"


def _verb(ids: Sequence[str], one: str, many: str) -> str:
    return one if len(ids) == 1 else many


@dataclass(frozen=True)
class ToolResult:
    """The results of one tool.

    Attributes:
        study: The success rates on originals and on the variants made by all rules together.
        holm_p: The p-value of the mean difference in `study`, after Holm's correction over all tools.
        crashes: The number of crashes by side, with variants made by all rules together.
        outcome_counts: The number of draws with each outcome by side, with variants by all rules together;
            empty if only successes are known.
        regression: What the numbers of rewritten places tell of success; None if they are unknown.
        arms: For each rule alone, the mean difference over the items that it changed.
        agreement: None if no metric was given to measure it, or if no item has enough answers.
    """

    study: SuccessStudy
    holm_p: float
    crashes: dict[str, int]
    outcome_counts: dict[str, dict[str, int]]
    regression: CountRegression | None
    arms: dict[str, MeanDifference]
    agreement: OutputAgreement | None = None


@dataclass(frozen=True)
class MetamorphicStudy:
    """The results of a metamorphic study.

    Attributes:
        tools: The results by the name of the tool.
        alpha: The significance level.
        sources: The original code by the id of the item; empty if unknown.
        variants: The code after rewriting by all rules together, the first variant of each item by the item's
            id; empty if unknown.
        warnings: Sentences about figures that mean little, and about what was left out.
        restored: The number of answers into which old names of functions were put back; None if this was not
            asked for.
    """

    tools: dict[str, ToolResult]
    alpha: float
    sources: dict[str, str]
    variants: dict[str, str]
    warnings: list[str]
    restored: int | None


def evaluate(
    recorded: Recorded,
    items: Mapping[str, dict[str, Any]] | None = None,
    variants: Sequence[dict[str, Any]] = (),
    judge: Judge | None = None,
    metric: Metric | None = None,
    alpha: float = 0.05,
) -> MetamorphicStudy:
    """Carry out a metamorphic study. This judges the answers in `recorded`, and adds facts about the items.

    `items` are JSON objects by id, None if only the answers are known. `judge` is needed for answers that are
    not judged yet. With `metric`, a tool's answers about variants are compared with those about originals.
    """
    items = items or {}
    if not 0 < alpha < 1:
        raise InputError(f"alpha {alpha}: expected a number between 0 and 1")
    _check_ids(recorded, items)
    judge_answers(recorded.draws, judge)
    # What the file of results says counts before what items and variants say.
    recorded.facts = collect_facts(items, variants) | recorded.facts
    recorded.rewritten = collect_rewritten(variants) | recorded.rewritten
    outcomes, crashes = count_successes(recorded)
    # A tool that crashed on a side of each item has no outcome to test.
    outcomes = {model: found for model, found in outcomes.items() if found}
    if not outcomes:
        _warn(recorded.warnings)
        lost = sum(count for sides in crashes.values() for count in sides.values())
        raise InputError(
            f"no item has a draw on both sides; {lost:,} of {len(recorded.draws):,} draws crashed"
        )
    # All tools keep the same items, so that their filtered results can be compared.
    ids = [{one.id for one in found if one.is_balanced} for found in outcomes.values()]
    kept = frozenset().union(*ids)
    studies = {model: study_success(found, kept) for model, found in outcomes.items()}
    corrected = holm([study.mean.p for study in studies.values()])
    arms = _compare_arms(recorded)
    warned = [*recorded.warnings, *warn_of_items(items, variants, _ids(recorded))]
    warned += warn_of_outcomes(recorded.draws)
    regressions = {model: regress_on_counts(recorded, model) for model in studies}
    warned += warn_of_regressions(regressions)
    for model, study in studies.items():
        left_out = sorted(_ids(recorded, model) - {one.id for one in study.outcomes})
        warned += warn_of_study(model, study, crashes[model], left_out, alpha)
    _warn(warned)
    return MetamorphicStudy(
        {
            model: ToolResult(
                study,
                p,
                crashes[model],
                count_outcomes(recorded.draws, model),
                regressions[model],
                arms.get(model, {}),
                measure_agreement([d for d in recorded.draws if (d.model, d.arm) == (model, "")], metric)
                if metric is not None
                else None,
            )
            for (model, study), p in zip(studies.items(), corrected, strict=True)
        },
        alpha,
        {name: item["source"] for name, item in items.items()},
        {row["id"]: row["text"] for row in reversed(variants) if not row.get("arm")},
        warned,
        recorded.restored,
    )


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=3)


def _ids(recorded: Recorded, model: str | None = None) -> set[str]:
    """Return the ids of the items with results; with `model`, of this tool on variants of all rules."""
    drawn = {
        d.id for d in recorded.draws if model is None or (d.model, d.arm, d.side) == (model, "", SIDES[1])
    }
    return drawn | {item for own, arm, item in recorded.counts if model is None or (own, arm) == (model, "")}


def _check_ids(recorded: Recorded, items: Mapping[str, dict[str, Any]]) -> None:
    """Refuse results about unknown items, if the items are known."""
    named = {draw.id: draw.where for draw in recorded.draws}
    named |= {item: "the results" for _, _, item in recorded.counts}
    for name, where in named.items():
        if items and name not in items:
            raise InputError(f"{where}: unknown item {name}")


def _compare_arms(recorded: Recorded) -> dict[str, dict[str, MeanDifference]]:
    """Compute the mean difference of each tool and each single rule, over the items that the rule changed."""
    names = dict.fromkeys(draw.arm for draw in recorded.draws if draw.arm)
    names |= dict.fromkeys(key[1] for key in recorded.counts if key[1])
    found: dict[str, dict[str, MeanDifference]] = {}
    for arm in names:
        for model, counted in count_successes(recorded, arm)[0].items():
            # A rule that did not change the code has no effect to measure.
            if outcomes := [one for one in counted if not one.unchanged]:
                found.setdefault(model, {})[arm] = compare_means(outcomes)
    return found


def collect_facts(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]]
) -> dict[tuple[str, str], ItemFacts]:
    """Collect the properties of items and variants, by (arm, id of the item).

    Each item has an entry with an empty arm, even if it has no such variant. The rules of several variants
    are joined.
    """
    known = {
        name: ItemFacts(read_nll(item, item.get("where", name)), str(item.get("group") or ""))
        for name, item in items.items()
    }
    facts = {("", name): found for name, found in known.items()}
    for row in variants:
        rules = tuple(rule for rule, count in (row.get("counts") or {}).items() if count)
        unchanged = row["text"] == items[row["id"]]["source"]
        key = row.get("arm") or "", row["id"]
        if (before := facts.get(key)) is not None and before.rules is not None:
            rules = tuple(dict.fromkeys((*before.rules, *rules)))
            unchanged = unchanged and before.unchanged
        facts[key] = replace(known[row["id"]], rules=rules, unchanged=unchanged)
    return facts


def collect_rewritten(variants: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], dict[str, int]]:
    """Collect how many places each rule rewrote, by (id of the item, number of the variant)."""
    return {
        (row["id"], row.get("variant", 0)): row["counts"]
        for row in variants
        if not row.get("arm") and row.get("counts") is not None
    }


def read_variants(file: Path, items: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Read variants from a file of `simllm perturb code`, without unparsed and refuted ones.

    Unparsed is code that could not be parsed; refuted code does not compile, or behaves differently.
    """
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for where, row in reading.objects(file):
        name, arm = reading.text_under(row, "id", where), str(row.get("arm") or "")
        number = row.get("variant", 0)
        if type(number) is not int:
            raise InputError(f"{where}: expected a number under variant, not {number!r}")
        if name not in items:
            raise InputError(f"{where}: unknown item {name}")
        if (name, arm, number) in found:
            raise InputError(
                f"{where}: a second variant of the item {name}; several have different numbers under variant"
            )
        if row.get("status") not in ("unparsed", "refuted"):
            reading.text_under(row, "text", where)
            _check_variant(row, where)
            found[name, arm, number] = row
    if not found:
        raise InputError(f"{file}: no variants in it")
    return list(found.values())


def _check_variant(row: dict[str, Any], where: str) -> None:
    """Check the fields `names`, `counts` and `arm` of a variant."""
    for field, kind, expected in (
        ("names", str, "new by old names"),
        ("counts", int, "counts by rule"),
    ):
        value = row.get(field)
        if value is not None and not (
            isinstance(value, dict) and all(type(part) is kind for part in value.values())
        ):
            raise InputError(f"{where}: expected {expected} under {field}")
    if any(count < 0 for count in (row.get("counts") or {}).values()):
        raise InputError(f"{where}: expected counts by rule from 0 under counts")
    if row.get("arm") is not None:
        reading.text_under(row, "arm", where)
