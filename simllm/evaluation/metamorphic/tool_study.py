"""A metamorphic study: how well tools do on original and on rewritten code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation.metamorphic.answer_judges import (
    Judge,
    OutputAgreement,
    judge_answers,
    measure_agreement,
)
from simllm.evaluation.metamorphic.recorded_draws import ItemFacts, Recorded, count_successes
from simllm.evaluation.metamorphic.success_rates import (
    MeanDifference,
    SuccessStudy,
    compare_means,
    study_success,
)
from simllm.io import files
from simllm.metrics.protocol import Metric
from simllm.stats.multiple_testing import holm


@dataclass(frozen=True)
class ToolResult:
    """The results of one tool.

    Attributes:
        study: The figures of the variants of all rules.
        holm_p: The p-value of the mean difference after Holm's correction over all tools.
        crashes: The number of crashes on each side.
        arms: For each rule that ran alone, the mean difference.
        agreement: How similar the answers are to each other; None without a metric, or with single draws.
    """

    study: SuccessStudy
    holm_p: float
    crashes: dict[str, int]
    arms: dict[str, MeanDifference]
    agreement: OutputAgreement | None = None


@dataclass(frozen=True)
class MetamorphicStudy:
    """The results of all tools, and the code for examples.

    Attributes:
        tools: The results by the name of the tool; the name is empty if there is only one.
        alpha: The significance level.
        sources: The original code of each item; empty if unknown.
        variants: The rewritten code of each item; empty if unknown.
    """

    tools: dict[str, ToolResult]
    alpha: float
    sources: dict[str, str]
    variants: dict[str, str]


def evaluate(
    recorded: Recorded,
    items: Mapping[str, dict[str, Any]] | None = None,
    variants: Sequence[dict[str, Any]] = (),
    judge: Judge | None = None,
    metric: Metric | None = None,
    alpha: float = 0.05,
) -> MetamorphicStudy:
    """Carry out a metamorphic study.

    Args:
        recorded: The results of the tools.
        items: The items by id, for facts about them, and for examples.
        variants: The variants of these items.
        judge: Judges answers without a success.
        metric: Scores a tool's answers against each other.
        alpha: The significance level.

    Raises:
        InputError: The results do not fit the items, or no item has draws on both sides.
    """
    items = items or {}
    if not 0 < alpha < 1:
        raise InputError(f"alpha {alpha}: expected a number between 0 and 1")
    _check_ids(recorded, items)
    judge_answers(recorded.draws, judge)
    recorded.facts = collect_facts(items, variants) | recorded.facts
    outcomes, crashes = count_successes(recorded)
    outcomes = {model: found for model, found in outcomes.items() if found}
    if not outcomes:
        lost = sum(count for sides in crashes.values() for count in sides.values())
        raise InputError(
            f"no item has a draw on both sides; {lost:,} of {len(recorded.draws):,} draws crashed"
        )
    ids = [{one.id for one in found if one.is_balanced} for found in outcomes.values()]
    kept = frozenset().union(*ids)
    studies = {model: study_success(found, kept) for model, found in outcomes.items()}
    corrected = holm([study.mean.p for study in studies.values()])
    arms = _compare_arms(recorded)
    return MetamorphicStudy(
        {
            model: ToolResult(
                study,
                p,
                crashes[model],
                arms.get(model, {}),
                measure_agreement([d for d in recorded.draws if (d.model, d.arm) == (model, "")], metric)
                if metric is not None
                else None,
            )
            for (model, study), p in zip(studies.items(), corrected, strict=True)
        },
        alpha,
        {name: item["source"] for name, item in items.items()},
        {row["id"]: row["text"] for row in variants if not row.get("arm")},
    )


def _check_ids(recorded: Recorded, items: Mapping[str, dict[str, Any]]) -> None:
    """Raise an error if a result belongs to an unknown item."""
    named = {draw.id: draw.where for draw in recorded.draws}
    named |= {item: "the results" for _, _, item in recorded.counts}
    for name, where in named.items():
        if items and name not in items:
            raise InputError(f"{where}: unknown item {name}")


def _compare_arms(recorded: Recorded) -> dict[str, dict[str, MeanDifference]]:
    """Compare originals and the variants that a rule alone has changed, by tool and rule."""
    names = dict.fromkeys(draw.arm for draw in recorded.draws if draw.arm)
    names |= dict.fromkeys(key[1] for key in recorded.counts if key[1])
    found: dict[str, dict[str, MeanDifference]] = {}
    for arm in names:
        for model, counted in count_successes(recorded, arm)[0].items():
            if outcomes := [one for one in counted if not one.unchanged]:
                found.setdefault(model, {})[arm] = compare_means(outcomes)
    return found


def collect_facts(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]]
) -> dict[tuple[str, str], ItemFacts]:
    """Return the facts about each item in each arm, and the rules that changed its variant."""
    known = {name: ItemFacts(item.get("nll"), str(item.get("group") or "")) for name, item in items.items()}
    facts = {("", name): found for name, found in known.items()}
    for row in variants:
        rules = tuple(rule for rule, count in (row.get("counts") or {}).items() if count)
        unchanged = row["text"] == items[row["id"]]["source"]
        facts[row.get("arm") or "", row["id"]] = replace(known[row["id"]], rules=rules, unchanged=unchanged)
    return facts


def read_variants(file: Path, items: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Read the variants of items, as `simllm perturb code` writes them; those without a text are left out.

    Raises:
        InputError: A line is wrong, names an unknown item, or repeats another.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for where, row in files.objects(file):
        name, arm = files.text_under(row, "id", where), row.get("arm") or ""
        if name not in items:
            raise InputError(f"{where}: unknown item {name}")
        if (name, arm) in found:
            raise InputError(f"{where}: a second variant of the item {name}")
        if row.get("status") not in ("unparsed", "refuted"):
            files.text_under(row, "text", where)
            found[name, arm] = row
    if not found:
        raise InputError(f"{file}: no variants in it")
    return list(found.values())
