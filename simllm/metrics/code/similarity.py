"""Metrics that compare lines and texts in normal form: exact match, LEMOD, edit similarity and chrF.

The first part of this file finds the whole and the edited lines of examples, also for other metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from simllm.code.line_diff import line_edit
from simllm.code.normal_form import normal_forms
from simllm.metrics.code.code_metric import CodeScorer, Items
from simllm.metrics.interface import Example
from simllm.metrics.text import words

_CACHED = 4096  # examples; several metrics score the same ones
Lines = tuple[list[str], list[str]]  # lines of the candidate, and lines of the reference
LinesOf = Callable[[Sequence[Example]], list[Lines]]


class Pair(NamedTuple):
    """Texts that are compared: lines of an example's candidate and reference, neither of them empty."""

    candidate: str
    reference: str
    language: str


@dataclass(frozen=True)
class Edits:
    """The edited lines of candidate and reference, each with its sign "-" (deleted) or "+" (inserted).

    Attributes:
        no_code: True if the normal form of the candidate is empty, but not that of the reference.
    """

    candidate: list[str]
    reference: list[str]
    no_code: bool


@lru_cache(_CACHED)
def _whole(example: Example) -> Lines:
    """Return the lines of the normal forms of an example's candidate and reference."""
    candidate, reference = normal_forms([example.candidate, example.reference or ""], example.language or "")
    return candidate, reference


@lru_cache(_CACHED)
def edits(example: Example) -> Edits:
    """Find the edited lines of an example's candidate and of its reference."""
    whole = _whole(example)
    # Equal normal forms must have equal edits, even if the source does not parse, so that layout counts.
    own = example.reference if whole[0] == whole[1] else example.candidate
    texts = [example.source or "", own or "", example.reference or ""]
    source, candidate, reference = normal_forms(texts, example.language or "")
    no_code = bool(reference) and not candidate
    return Edits(line_edit(source, candidate), line_edit(source, reference), no_code)


def whole_lines(examples: Sequence[Example]) -> list[Lines]:
    """Return the lines of the normal forms of each candidate and reference."""
    return list(map(_whole, examples))


def edited_lines(examples: Sequence[Example]) -> list[Lines]:
    """Return the edited lines of each candidate and reference, without signs."""
    return [
        (without_signs(found.candidate), without_signs(found.reference)) for found in map(edits, examples)
    ]


def without_signs(edit: Sequence[str]) -> list[str]:
    """Return the lines of an edit without the sign "-" (deleted) or "+" (inserted) before each line."""
    return [line[1:] for line in edit]


def compare(
    examples: Sequence[Example], lines_of: LinesOf, score: Callable[[Sequence[Pair]], Sequence[float]]
) -> list[float]:
    """Score the lines of n candidates against those of their references; `score` gets all pairs at once.

    Two texts without lines score 1, and a text without lines against another one scores 0. So does a
    candidate without code.
    """
    values, pairs, places = [0.0] * len(examples), [], []
    for place, (example, (candidate, reference)) in enumerate(zip(examples, lines_of(examples), strict=True)):
        # An empty candidate deletes every line, which would match the lines that the reference deletes.
        if lines_of is edited_lines and edits(example).no_code:
            continue
        if candidate and reference:
            pairs.append(Pair("\n".join(candidate), "\n".join(reference), example.language or ""))
            places.append(place)
        else:
            values[place] = float(not candidate and not reference)
    for place, value in zip(places, score(pairs), strict=True):
        values[place] = value
    return values


def corpus_pairs(items: Items, lines_of: LinesOf) -> list[Pair]:
    """Return the texts of all examples, which may be empty, for metrics that sum counts over a corpus."""
    examples = list(chain.from_iterable(items))
    whole = whole_lines(examples)
    # A candidate without code matches nothing. Without this rule, it would be an edit that deletes all lines
    # of the source, and BLEU would reward the deleted lines that the reference deletes, too.
    return [
        Pair("\n".join(lines) if code else "", "\n".join(reference), example.language or "")
        for example, (code, _), (lines, reference) in zip(examples, whole, lines_of(examples), strict=True)
    ]


def load_exact_match() -> CodeScorer:
    """1 if candidate and reference have equal normal forms, otherwise 0."""
    return CodeScorer(exact_matches)


def exact_matches(examples: Sequence[Example]) -> list[float]:
    """Return for each example 1 if candidate and reference have equal normal forms, else 0."""
    return [float(candidate == reference) for candidate, reference in whole_lines(examples)]


def load_lemod(argument: str, part: str) -> CodeScorer:
    """LEMOD: "precision", "recall" or "f1" (`part`) of the candidate's edited lines.

    With the argument "multiset", repeated lines are counted, and "-x" differs from "+x". Otherwise the sign
    is removed, and each distinct line counts once.
    """

    def counts(examples: Iterable[Example]) -> list[tuple[int, int, int]]:
        return [_count_lines(found, multiset=bool(argument)) for found in map(edits, examples)]

    def compute(examples: Sequence[Example]) -> list[float]:
        # Without any edited line, both versions leave the source as it is.
        return [_agreement(*row, part) if any(row) else 1.0 for row in counts(examples)]

    def corpus(items: Items) -> float:
        rows = counts(chain.from_iterable(items))
        common, edited, expected = (sum(column) for column in zip((0, 0, 0), *rows, strict=True))
        return _agreement(common, edited, expected, part)

    return CodeScorer(compute, corpus)


def _count_lines(found: Edits, multiset: bool) -> tuple[int, int, int]:
    """Count the edited lines that both versions have, those of the candidate, and those of the reference."""
    candidate, reference = (
        Counter(line[0] + line[1:].strip() for line in edit)
        if multiset
        else Counter({line.strip(): 1 for line in without_signs(edit)})
        for edit in (found.candidate, found.reference)
    )
    # The lines of a candidate without code count as edited, but match nothing.
    common = 0 if found.no_code else (candidate & reference).total()
    return common, candidate.total(), reference.total()


def _agreement(common: int, edited: int, expected: int, part: str) -> float:
    """Compute "precision", "recall" or "f1" from numbers of edited lines; 0 / 0 counts as 0."""
    over = {"precision": edited, "recall": expected, "f1": (edited + expected) / 2}[part]
    return common / over if over else 0.0


def load_edit_similarity(argument: str) -> CodeScorer:
    """1 - (Levenshtein distance) / (length of the longer text).

    "indel" forbids substitutions: 1 - (insertions and deletions) / (sum of both lengths).
    """

    def score(pairs: Sequence[Pair]) -> list[float]:
        from rapidfuzz.distance import Indel, Levenshtein

        distance = Indel if argument else Levenshtein
        return [float(distance.normalized_similarity(one.candidate, one.reference)) for one in pairs]

    return CodeScorer(lambda examples: compare(examples, whole_lines, score))


def load_chrf() -> CodeScorer:
    """Character n-gram F-score (chrF) of the normal forms, from 0 to 1."""
    chrf = words.load_chrf().compute

    def score(pairs: Sequence[Pair]) -> list[float]:
        return list(chrf([one.candidate for one in pairs], [one.reference for one in pairs]))

    return CodeScorer(lambda examples: compare(examples, whole_lines, score))
