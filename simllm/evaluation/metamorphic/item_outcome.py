"""Counts of a tool's successes on an item (a piece of code), before and after the code is rewritten."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ItemOutcome:
    """Counts of a tool's successes on one item, a piece of code in an original and in a rewritten form.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success
    is a right answer of the tool. The rewritten code is called the variant.

    Attributes:
        id: The id of the item.
        original: Two numbers: how many answers about the original code are successes, and how many answers
            about it there are.
        transformed: Two numbers: how many answers about the variant are successes, and how many answers about
            it there are.
        nll: The mean negative log-likelihood per token of the original code, in nats; None if unknown.
        group: A label of the item from the input file, such as "long"; empty if it has none. If the items
            have different labels, the study also gives results for each label.
        rules: The names of the rewriting rules that changed the code of the variant; None if unknown.
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
        """The tested tool's success rates: first on the original code, then on the rewritten code.

        A success rate is the share of the tool's answers that are right.
        """
        return self.original[0] / self.original[1], self.transformed[0] / self.transformed[1]

    @property
    def difference(self) -> float:
        """The change of the tested tool's success rate when the code is rewritten, from -1 to 1.

        This is the success rate on the rewritten code minus the success rate on the original code. A success
        rate is the share of the tool's answers that are right.
        """
        original, transformed = self.rates
        return transformed - original

    @property
    def table(self) -> list[list[int]]:
        """The tool's counts [successes, failures], first on the original code, then on the rewritten code."""
        return [[done, draws - done] for done, draws in (self.original, self.transformed)]

    @property
    def is_balanced(self) -> bool:
        """True if the tool's answers about the item include at least one success and at least one failure.

        Answers about the original code and about the rewritten code are counted together. The thesis by de
        Koning (see `metamorphic_fisher_and_mcnemar`) keeps only such items.
        """
        return self.rates not in ((0.0, 0.0), (1.0, 1.0))
