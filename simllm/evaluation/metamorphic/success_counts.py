"""Counts of a tool's successes on the original and the variant of each item."""

from __future__ import annotations

from collections.abc import Iterable

from simllm.errors import InputError
from simllm.evaluation.metamorphic.item_outcome import ItemOutcome
from simllm.evaluation.metamorphic.read_tool_results import SIDES, Draw, Recorded


def count_successes(
    recorded: Recorded, arm: str = ""
) -> tuple[dict[str, list[ItemOutcome]], dict[str, dict[str, int]]]:
    """Count the successes of each tool on each item, for variants of one arm, and its crashes by side.

    All draws must be judged: a `success` of None counts as a crash, which is in no count of successes. An
    item is skipped if the tool crashed each time on a side, or if `arm` is empty and the tool was run only on
    variants of single rules. Otherwise, an item with one side is an `InputError`.
    """
    counts: dict[tuple[str, str], dict[str, tuple[int, int]]] = {
        (model, item): dict(zip(SIDES, pair, strict=True))
        for (model, own, item), pair in recorded.counts.items()
        if own == arm
    }
    crashes: dict[str, dict[str, int]] = {model: dict.fromkeys(SIDES, 0) for model, _ in counts}
    seen: dict[tuple[str, str], dict[str, str]] = {}
    for draw in _with_originals(recorded.draws, arm):
        sides = counts.setdefault((draw.model, draw.id), {})
        seen.setdefault((draw.model, draw.id), {})[draw.side] = draw.where
        lost = crashes.setdefault(draw.model, dict.fromkeys(SIDES, 0))
        if draw.success is None:
            lost[draw.side] += 1
        else:
            done, draws = sides.get(draw.side, (0, 0))
            sides[draw.side] = (done + draw.success, draws + 1)
    outcomes: dict[str, list[ItemOutcome]] = {model: [] for model in crashes}
    for (model, item), sides in counts.items():
        where = seen.get((model, item), dict.fromkeys(SIDES, ""))
        if missing := [side for side in SIDES if side not in where]:
            place = next(iter(where.values()))
            raise InputError(f"{place}: the item {item} has no draw of the side {missing[0]}")
        if len(sides) == len(SIDES):
            facts = vars(recorded.facts_about(arm, item))
            outcomes[model].append(ItemOutcome(item, sides[SIDES[0]], sides[SIDES[1]], **facts))
    return outcomes, crashes


def _with_originals(draws: Iterable[Draw], arm: str) -> Iterable[Draw]:
    """Select the draws of an arm, with the draws about the originals to which its variants are compared."""
    draws = list(draws)
    # The original code is the same for all arms: variants of an arm without originals of its own are compared
    # with the originals of an empty arm.
    own = {(draw.model, draw.id) for draw in draws if draw.arm == arm and draw.side == SIDES[1]}
    has_originals = {(d.model, d.id) for d in draws if d.arm == arm and d.side == SIDES[0]}
    # An original whose only variants are of single rules has no counterpart among those of all rules.
    dropped = set() if arm else {(d.model, d.id) for d in draws if d.arm and d.side == SIDES[1]} - own
    for draw in draws:
        key = (draw.model, draw.id)
        if (draw.arm == arm and key not in dropped) or (
            draw.side == SIDES[0] and draw.arm == "" and key in own - has_originals
        ):
            yield draw
