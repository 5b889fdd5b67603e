"""Sentences that warn about figures of a metamorphic study which mean little or nothing.

They stand on standard error, in the JSON and on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simllm.evaluation.metamorphic.item_outcome import ItemOutcome
from simllm.evaluation.metamorphic.likelihood_correlation import Likelihood
from simllm.evaluation.metamorphic.success_rates import SuccessStudy
from simllm.io.number_format import format_count
from simllm.stats.paired_bootstrap_and_permutation import LEAST_ITEMS

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
    # The smallest p of a sign flip test: in two of 2^n choices, all signs agree.
    least = min(1.0, 2.0 ** (1 - n))
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
    if uneven := [one.id for one in outcomes if one.original[1] != one.transformed[1]]:
        yield f"{_named(uneven, 'item')} of {name} {_verb(uneven, 'has', 'have')} more draws on one side"
    if unchanged := sum(one.unchanged for one in outcomes):
        what = "the study shows noise alone" if unchanged == n else "they make the mean difference smaller"
        yield f"{unchanged:,} of {format_count(n, 'variant')} of {name} equal their originals; {what}"


def _warn_of_likelihood(name: str, found: Likelihood, items: int) -> Iterator[str]:
    if found.all.n < items:
        yield f"{items - found.all.n:,} of {format_count(items, 'item')} have no negative log-likelihood"
    if found.all.rho is None:
        yield f"the correlation of {name} with the negative log-likelihood is not defined"


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
    shown = ", ".join(name if len(name) <= 40 else f"{name[:40]}…" for name in ids[:_SHOWN])
    return f"{format_count(len(ids), what)} ({shown}{', …' if len(ids) > _SHOWN else ''})"


def _verb(ids: Sequence[str], one: str, many: str) -> str:
    return one if len(ids) == 1 else many
