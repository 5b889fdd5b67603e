"""Counts of a tool's successes on an item, before and after rewriting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from simllm.errors import InputError
from simllm.evaluation.metamorphic.results import SIDES, Draw, Recorded


@dataclass(frozen=True)
class ItemOutcome:
    """Counts of a tool's successes on one item.

    Attributes:
        original: The number of successes, and the number of answers, about the original.
        transformed: The same two numbers about the variant.
        nll: None if unknown.
        group: A label of the item from the input file, such as "long"; empty if it has none.
        rules: The names of the rules that changed the variant; None if unknown.
        unchanged: Whether the variant equals the original.
    """

    id: str
    original: tuple[int, int]
    transformed: tuple[int, int]
    nll: float | None = None
    group: str = ""
    rules: tuple[str, ...] | None = None
    unchanged: bool = False

    @property
    def rates(self) -> tuple[float, float]:
        """The success rates: on the original, then on the variant."""
        return self.original[0] / self.original[1], self.transformed[0] / self.transformed[1]

    @property
    def difference(self) -> float:
        """The difference of the success rates, from -1 to 1."""
        original, transformed = self.rates
        return transformed - original

    @property
    def table(self) -> list[list[int]]:
        """The counts [successes, failures]: on the original, then on the variant."""
        return [[done, draws - done] for done, draws in (self.original, self.transformed)]

    @property
    def is_balanced(self) -> bool:
        """Whether the answers on both sides together include a success and a failure."""
        # The thesis keeps only such items.
        return self.rates not in ((0.0, 0.0), (1.0, 1.0))


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
