"""The scale of a judge, and the score in what a judge answers.

Numbers stand in many places of an answer: in its reasons, in lists, in the scale that it repeats. A number is
a score only if its place says so. Otherwise the answer has no score, because a wrong one cannot be noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simllm.errors import OptionError
from simllm.llm.answers import blank_thinking, check_labels, find_label, label_probabilities
from simllm.llm.reply import Place

_MOST_LABELS = 21  # scores of a scale whose probabilities are read; endpoints send the 20 best tokens
_LONGEST = 20_000  # characters at the end of an answer that are read: a broken model repeats itself
# Marks around a number: Markdown, quotes, JSON and LaTeX. An underscore inside of a name is none.
_MARKS = re.compile(r"[*`~\"'{}$\\]|(?<![^\W_])_|_(?![^\W_])")
# Models answer in the form "<score>4</score>", too.
_OPENING_TAG, _CLOSING_TAG = re.compile(r"<(\w++)>"), re.compile(r"</\w++>")
# "3-4", "3 to 4" and "between 3 and 4" are no single score.
_RANGE = re.compile(
    r"(?<!\d)\d++(?:\.\d++)?\s*(?:[-\u2010-\u2015]|\bto\b|\bor\b)\s*\d++(?:\.\d++)?|\bbetween\s+[\d.]+\s+and\s+[\d.]+",
    re.IGNORECASE,
)
_AMOUNT = (
    r"(?<![\w.,/+\-\u2010-\u2015\u2212])(?P<number>[-+\u2212]?\d{1,9}(?:\.\d{1,9}|,\d{1,2}(?!\d))?)"
    r"(?:\s*(?:/|\bout\s+of\b|\bof\b)\s*(?P<of>[-\u2212]?\d{1,9}(?:\.\d{1,9})?))?"
    r"(?!\w|\s?%|[.,/]\d|\s*/|-[^\W\d])"
)
# What follows a score; a noun would make it a count, as in "2 facts".
_ALONE = (
    r"(?=\s*(?:\Z|\n|[.,;:!?)\](\u2013\u2014-]"
    r"|(?:because|since|as|for|on|due|based|given|with|but|and)\b"
    r"|(?:points?|stars?)\s*(?:\Z|[.,;:!?)\n])))"
)
_MARKED = re.compile(
    r"\b(?:score|rating|grade|answer|verdict|overall|adequacy|boxed)\b[^\d.!?\n]{0,40}?"
    rf"(?:[:=>\u2192]|\b(?:is|of|as)\b|\s)\W{{0,10}}?(?:an?\s+)?{_AMOUNT}{_ALONE}",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\b(?:give|gives|rate|assign|deserves?|award|gets?|scores?)\b[^\d.!?\n]{0,60}?" + _AMOUNT + _ALONE,
    re.IGNORECASE,
)
_BEGIN = re.compile(rf"\W*?{_AMOUNT}{_ALONE}")
_LINE = re.compile(rf"^[^\w\n]*?{_AMOUNT}[^\w\n]*$", re.MULTILINE)
_LIST = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
# "2 of 5 facts" is a count, as well.
_FRACTION = re.compile(rf"{_AMOUNT}(?:{_ALONE}|(?=\s+(?:is|overall|in\s+total)\b))", re.IGNORECASE)


@dataclass(frozen=True)
class Scale:
    """A scale of numbers from `low` (worst) to `high` (best), or of labels from the worst to the best.

    Labels have the scores 1, 2, 3, …
    """

    low: float
    high: float
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the bounds or the labels."""
        if self.labels:
            # Frozen, and the bounds follow from the labels.
            object.__setattr__(self, "labels", check_labels(self.labels))
            object.__setattr__(self, "low", 1.0)
            object.__setattr__(self, "high", float(len(self.labels)))
        elif self.low == self.high:
            raise OptionError("{scale}: both ends are {end:g}; expected two numbers", end=self.low)
        elif self.low > self.high:
            message = "{scale} {low:g} to {high:g}: expected the worst score first; higher is better"
            raise OptionError(message, low=self.low, high=self.high)

    def __str__(self) -> str:
        return ", ".join(self.labels) if self.labels else f"{self.low:g}-{self.high:g}"

    @property
    def description(self) -> str:
        """The scale in words, for prompts."""
        if self.labels:
            return f"{', '.join(self.labels)} (from the worst to the best)"
        return f"{self.low:g} (the worst) to {self.high:g} (the best)"

    @cached_property
    def steps(self) -> dict[str, float]:
        """The score of each label, or of each whole number; empty if there are none, or too many."""
        if self.labels:
            return {label: float(number) for number, label in enumerate(self.labels, 1)}
        is_whole = self.low.is_integer() and self.high.is_integer()
        if not is_whole or self.high - self.low >= _MOST_LABELS:
            return {}
        return {str(number): float(number) for number in range(int(self.low), int(self.high) + 1)}

    def read(self, answer: str) -> float | None:
        """Return the score in an answer; None if it has none, or one that is not on the scale."""
        if self.labels:
            found = find_label(answer, self.labels)
            return self.steps[found[0]] if found else None
        number = self._find(answer)
        return number[0] if number else None

    def find_step(self, answer: str, labels: Sequence[str]) -> tuple[str, int] | None:
        """Return the label or whole number in an answer, and where it begins."""
        if self.labels:
            return find_label(answer, labels)
        found = self._find(answer)
        return (f"{found[0]:g}", found[1]) if found and f"{found[0]:g}" in labels else None

    def expectation(self, places: Sequence[Place]) -> float | None:
        """Return the mean of the scale's steps, by their probabilities; None if they are not known."""
        found = label_probabilities(places, tuple(self.steps))
        if found is None or found.values is None:
            return None
        return sum(self.steps[label] * value for label, value in found.values.items())

    def _find(self, answer: str) -> tuple[float, int] | None:
        """Return the number that is the answer's score, and where it begins."""
        cut = max(0, len(answer) - _LONGEST)
        # All replacements are as long as what they replace, so that places stay.
        text = _OPENING_TAG.sub(r" \1:", blank_thinking(answer)[cut:])
        text = _MARKS.sub(" ", _CLOSING_TAG.sub(lambda found: "\n" * len(found[0]), text))
        if (self.low, self.high) == (0, 100):
            text = text.replace("%", " ")
        # The scale itself is no score: "on a scale from 1 (worst) to 5 (best)", "a 5-point scale".
        low, high = (re.escape(f"{end:g}") for end in (self.low, self.high))
        label = r"(?:\s*[(=:][^()\d\n]{0,40}\)?)?"
        until = r",?\s*(?:[-\u2010-\u2015]|\.\.+|\bto\b|\band\b)\s*"
        own = rf"(?<![\w.]){low}{label}{until}{high}(?![\w.]\d){label}"
        for pattern in (own, rf"(?<![\w.]){high}[\s-]point", _RANGE):
            text = re.sub(pattern, lambda found: " " * len(found[0]), text)
        for found in (
            [*_MARKED.finditer(text)][-1:],
            [one for one in _FRACTION.finditer(text) if one["of"]][-1:],
            self._standing_alone(text),
            [*_GIVEN.finditer(text)][-1:],
        ):
            if found:
                values = {self._value(one) for one in found}
                value = values.pop()
                # Two scores that differ are none.
                return None if values or value is None else (value, cut + found[-1].start("number"))
        return None

    @staticmethod
    def _standing_alone(text: str) -> list[re.Match[str]]:
        """Return the numbers that are a whole line, or begin the answer and are no item of a list."""
        begin = _BEGIN.match(text)
        if begin and len(_LIST.findall(text)) > 1:
            begin = None
        return [*([begin] if begin else []), *_LINE.finditer(text)]

    def _value(self, found: re.Match[str]) -> float | None:
        value = _number(found["number"])
        if found["of"] is not None and _number(found["of"]) != self.high:
            return None  # a score on another scale
        return value if self.low <= value <= self.high else None


def _number(text: str) -> float:
    return float(text.replace(",", ".").replace("\N{MINUS SIGN}", "-"))
