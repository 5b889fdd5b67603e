"""Further figures for the report of runs: lengths of programs, tokens by kind of prompt, and hunks.

A *hunk* is a block of neighbouring lines that a change deletes, inserts or replaces. An item is *repaired* if
at least one of its finished attempts was accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simllm.code.line_diff import count_hunks
from simllm.repair.items import RepairItem
from simllm.repair.results import AttemptResult, RoundResult, finished_by_item
from simllm.stats.classification import average_pass_rate
from simllm.stats.significance import mann_whitney

_MOST_HUNKS = 3  # this number stands for all larger ones, too
_ALPHA = 0.05


@dataclass(frozen=True)
class CodeLengths:
    """Lengths, in lines, of the incorrect programs of repaired and of other items, and a test of both.

    Attributes:
        p: The p-value of Mann and Whitney's test; NaN if a side is empty.
        smallest_p: The smallest p-value that so many items can give; NaN if a side is empty.
    """

    repaired: int
    repaired_median: float
    others: int
    others_median: float
    u: float
    p: float
    smallest_p: float

    @property
    def warning(self) -> str | None:
        """The reason why the test means nothing; None if it means something."""
        if math.isnan(self.p):
            return f"code length: {'every' if self.repaired else 'no'} item is repaired: there is no test"
        if self.smallest_p >= _ALPHA:
            sides = f"{self.repaired} repaired and {self.others} other items"
            return f"code length: {sides}: no difference can be significant"
        return None


def code_lengths(items: Sequence[RepairItem], attempts: Sequence[AttemptResult]) -> CodeLengths:
    """Compare the lengths of the programs that were repaired with those of the others."""
    finished = finished_by_item(attempts)
    sides: dict[bool, list[int]] = {True: [], False: []}
    for item in items:
        if item.id in finished:
            is_repaired = any(one.accepted for one in finished[item.id])
            sides[is_repaired].append(len(item.code.splitlines()))
    yes, no = (np.array(sides[side], np.float64) for side in (True, False))
    found = mann_whitney(yes, no)
    smallest = 2 / math.comb(len(yes) + len(no), len(yes)) if len(yes) and len(no) else math.nan
    medians = [float(np.median(side)) if len(side) else math.nan for side in (yes, no)]
    return CodeLengths(len(yes), medians[0], len(no), medians[1], found.statistic, found.p, smallest)


@dataclass(frozen=True)
class PromptKind:
    """The requests with one kind of prompt; a mean is None if the endpoint reported no tokens.

    Attributes:
        kind: What the prompt adds, such as "guidance"; "nothing" for the task and the program alone.
        prompt_tokens: Mean number of tokens of a request, with the conversation before.
        completion_tokens: Mean number of tokens of a reply.
    """

    kind: str
    requests: int
    accepted: int
    prompt_tokens: float | None
    completion_tokens: float | None


def prompt_kinds(attempts: Sequence[AttemptResult]) -> list[PromptKind]:
    """Count requests and tokens by the kind of prompt, in the order in which the kinds occur."""
    by_kind: dict[str, list[RoundResult]] = {}
    for attempt in attempts:
        for one in attempt.rounds:
            by_kind.setdefault(one.kind, []).append(one)
    return [
        PromptKind(
            kind,
            len(rounds),
            sum(one.accepted for one in rounds),
            _mean(one.prompt_tokens for one in rounds),
            _mean(one.completion_tokens for one in rounds),
        )
        for kind, rounds in by_kind.items()
    ]


@dataclass(frozen=True)
class FixHunks:
    """The items whose fix has a number of hunks.

    Attributes:
        hunks: The number of hunks, such as "1"; the last row, such as "3 or more", has all larger ones.
        average: AVG, the share of accepted attempts at these items.
        patch_hunks: Mean number of hunks of the accepted patches; None if there are none.
    """

    hunks: str
    items: int
    average: float
    patch_hunks: float | None


def fix_hunks(items: Sequence[RepairItem], attempts: Sequence[AttemptResult]) -> list[FixHunks]:
    """Group the items with a fix by its hunks; items whose lines take too long to compare are left out."""
    finished = finished_by_item(attempts)
    groups: dict[int, list[tuple[RepairItem, Sequence[AttemptResult]]]] = {}
    for item in items:
        if (
            item.fix is not None
            and item.id in finished
            and (number := _hunks(item.code, item.fix)) is not None
        ):
            groups.setdefault(min(number, _MOST_HUNKS), []).append((item, finished[item.id]))
    rows = []
    for number, group in sorted(groups.items()):
        patches = [
            _hunks(item.code, one.rounds[-1].code or "")
            for item, each in group
            for one in each
            if one.accepted
        ]
        name = f"{number} or more" if number == _MOST_HUNKS else str(number)
        passed = [[one.accepted for one in each] for _, each in group]
        rows.append(FixHunks(name, len(group), average_pass_rate(passed), _mean(patches)))
    return rows


def _hunks(source: str, target: str) -> int | None:
    """Count the hunks of a change, without white space at line ends; None if it takes too long."""
    lines = [[line.rstrip() for line in text.splitlines()] for text in (source, target)]
    try:
        return count_hunks(*lines)
    except TimeoutError:
        return None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class Analysis:
    """All of it for one run; for summaries, the prompts alone."""

    lengths: CodeLengths | None
    prompts: list[PromptKind]
    hunks: list[FixHunks]

    @property
    def numbers(self) -> dict[str, Any]:
        """The analysis as values for JSON."""
        return {
            "code length": vars(self.lengths) if self.lengths else None,
            "prompts": [vars(one) for one in self.prompts],
            "hunks of the fix": [vars(one) for one in self.hunks],
        }


def analyse(items: Sequence[RepairItem], attempts: Sequence[AttemptResult]) -> Analysis:
    """Analyse a run."""
    if any(item.reference is not None for item in items):
        return Analysis(None, prompt_kinds(attempts), [])
    return Analysis(code_lengths(items, attempts), prompt_kinds(attempts), fix_hunks(items, attempts))
