"""Counts of a tool's successes on an item, before and after rewriting."""

from __future__ import annotations

from dataclasses import dataclass


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
