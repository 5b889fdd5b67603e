"""The pair-wise judge: which of two candidates is better, asked in both orders.

Models prefer the first text, or the second, whatever the texts are. A candidate therefore wins only if it is
named in both orders. If the orders disagree, the pair is a tie.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from simllm.array_types import Floats
from simllm.llm.answers import read_label
from simllm.llm.reply import Reply
from simllm.metrics.interface import Example
from simllm.metrics.judge.replies import ask
from simllm.metrics.judge.settings import PAIRWISE_LABELS, Judge, read_settings

_FIRST = {"first": 1.0, "tie": 0.5, "second": 0.0}  # what the first candidate gets
_LEAST_DECIDED = 10
_MOST_BY_PLACE = 0.65  # share of decided answers that name the same place; beyond it, a warning


@dataclass(frozen=True)
class Wins:
    """The result of a pair-wise comparison of systems on n items.

    Attributes:
        values: For each system, its (n,) shares of wins over the other systems; a tie is half a win. NaN for
            an item with an unreadable reply.
        disagreeing: The share of pairs for which the two orders disagree, among those with both replies
            readable; NaN without any.
        first: The share of answers for the text that stands first, among the answers that decide.
        facts: The number of requests, of tokens, and the cost, by name.
        warnings: Messages on replies, and on answers that depend on the order.
    """

    values: dict[str, Floats]
    disagreeing: float
    first: float
    signature: str
    facts: Mapping[str, Any]
    warnings: tuple[str, ...]


class PairwiseJudge:
    """A judge that compares the candidates of systems."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def compare(self, systems: Mapping[str, Sequence[Example]]) -> Wins:
        """Compare each two systems on each of n items, in both orders.

        Equal candidates are a tie, and are not asked about.

        Raises:
            LostReplyError: The endpoint stopped answering. The next call asks for the missing replies.
        """
        pairs = list(combinations(systems, 2))
        matches = [
            (a, b, place, systems[a][place], systems[b][place])
            for a, b in pairs
            for place in range(len(systems[a]))
        ]
        asked = [match for match in matches if match[3].candidate.split() != match[4].candidate.split()]
        prompts = [
            prompt
            for *_, one, other in asked
            for prompt in (self.judge.prompt(one, other.candidate), self.judge.prompt(other, one.candidate))
        ]
        replies = ask(self.judge, prompts, _read, "one of first, second and tie")
        n = len(next(iter(systems.values())))
        shares = {pair: np.full(n, 0.5) for pair in pairs}
        read = disagreeing = 0
        for number, (a, b, place, *_) in enumerate(asked):
            forward, backward = (_vote(replies.values[2 * number + order]) for order in (0, 1))
            if forward is None or backward is None:
                shares[a, b][place] = np.nan
                continue
            read += 1
            # In the second order, `b` stands first.
            disagreeing += forward != 1 - backward
            shares[a, b][place] = forward if forward == 1 - backward else 0.5
        values = {
            name: np.mean(
                [own if name == a else 1 - own for (a, b), own in shares.items() if name in (a, b)], axis=0
            )
            for name in systems
        }
        decided = [vote for own in replies.values for vote in own if vote is not None and vote != 0.5]
        first = sum(decided) / len(decided) if decided else float("nan")
        share = disagreeing / read if read else float("nan")
        messages = (*replies.warnings, *self._about_order(share, first, len(decided)))
        for message in messages:
            warnings.warn(message, stacklevel=2)
        return Wins(values, share, first, self.judge.signature, replies.facts, messages)

    def _about_order(self, disagreeing: float, first: float, decided: int) -> list[str]:
        """Return a warning if the place of a text decides more than the text."""
        if decided < _LEAST_DECIDED or max(first, 1 - first) <= _MOST_BY_PLACE:
            return []
        place, share = ("first", first) if first > 0.5 else ("second", 1 - first)
        return [
            f"judge={self.judge.file}: {share:.0%} of its {decided:,} decisions name the {place} text, "
            f"whichever it is; {disagreeing:.0%} of the pairs are ties because the two orders disagree"
        ]


def _read(reply: Reply) -> float | None:
    label = None if reply.text is None else read_label(reply.text, PAIRWISE_LABELS)
    return None if label is None else _FIRST[label]


def _vote(values: Sequence[float | None]) -> float | None:
    """Return what most samples say about the first candidate: 1 for a win, 0.5, or 0."""
    known = [value for value in values if value is not None]
    return float(np.sign(np.mean(known) - 0.5) / 2 + 0.5) if known else None


def load(file: str) -> PairwiseJudge | None:
    """Load a pair-wise judge; None if the file describes a point-wise one."""
    return PairwiseJudge(Judge(Path(file))) if read_settings(Path(file)).pairwise else None
