"""Results of significance tests, as computed (`Finding`) and as shown in the report (`Answer`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simllm.stats.multiple_testing import holm
from simllm.stats.significance_outcome import Outcome


@dataclass(frozen=True)
class Finding:
    """The result of one significance test, before the correction for multiple tests.

    Attributes:
        outcome: Its p-value is NaN if no test was possible.
        why: The reason for choosing this test, with the numbers on which the choice depends.
        effect: The size of the effect, such as a difference of accuracies; None if it is not defined. A
            difference is that of the first in `classifiers` minus the second.
        words: The observed result as a sentence, without the full stop.
        interval: The ends of the effect's 95% interval.
        assumptions: What the test assumes.
    """

    question: str
    classifiers: list[str]
    outcome: Outcome
    why: str
    effect: float | None
    words: str
    interval: tuple[float, float] | None = None
    assumptions: str = "The items are independent of each other."


@dataclass(frozen=True)
class Answer:
    """A finding as the report shows it. Undefined numbers are None.

    Attributes:
        split: The split whose predictions were tested, such as "test".
        p_holm: The p-value after the correction for the number of tests of the same question. The correction
            is Holm's, unless the test itself corrects its p-values (as Nemenyi's test does).
        low: The lower end of the effect's 95% interval.
        high: The upper end of this interval.
        verdict: The observed result, and whether it is significant, in words.
    """

    question: str
    split: str
    classifiers: list[str]
    test: str
    why: str
    assumptions: str
    statistic: float | None
    df: int | None
    p: float | None
    p_holm: float | None
    effect: float | None
    low: float | None
    high: float | None
    verdict: str


def answer(findings: Sequence[Finding], split: str, alpha: float, is_corrected: bool = False) -> list[Answer]:
    """Correct the p-values of the findings for one question by Holm's method, and add verdicts.

    `is_corrected` says that the test has corrected its p-values already.
    """
    raw = [finding.outcome.p for finding in findings]
    answers = []
    for finding, p in zip(findings, raw if is_corrected else holm(raw), strict=True):
        numbers = (finding.outcome.statistic, finding.outcome.p, p, *(finding.interval or (math.nan,) * 2))
        statistic, p_value, p_holm, low_end, high_end = (None if math.isnan(x) else x for x in numbers)
        answers.append(
            Answer(
                question=finding.question,
                split=split,
                classifiers=finding.classifiers,
                test=finding.outcome.test,
                why=finding.why,
                assumptions=finding.assumptions,
                statistic=statistic,
                df=finding.outcome.df,
                p=p_value,
                p_holm=p_holm,
                effect=finding.effect,
                low=low_end,
                high=high_end,
                verdict=_verdict(finding, p, alpha),
            )
        )
    return answers


def _verdict(finding: Finding, p: float, alpha: float) -> str:
    """Write the result and whether it is significant; `p` is corrected, and NaN if no test was possible."""
    # Without an observed difference, the sentence says all; a p-value would add nothing.
    if math.isnan(p) or finding.effect == 0:
        return f"{finding.words}."
    name = "p" if p == finding.outcome.p else "corrected p"
    if p <= alpha:
        return f"{finding.words}. This is significant: {name} = {format_p(p)} is at most {alpha:g}."
    shown = f"{name} = {format_p(p)} is above {alpha:g}"
    return f"{finding.words}. The data do not show that this is more than chance: {shown}."


def format_p(p: float) -> str:
    """Format a p-value with three decimals, or with two significant digits if it is below .01."""
    return f"{p:.3f}" if p >= 0.01 else f"{p:.2g}"
