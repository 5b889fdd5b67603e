"""Exact match, and LEMOD: precision, recall and F1 of edited lines (Sheikhaei et al.)."""

from __future__ import annotations

from collections import Counter

from simllm.code.normal_form import normal_forms
from simllm.metrics.code.compared_texts import edits, without_signs
from simllm.metrics.protocol import Example


def exact_match(example: Example) -> float:
    """Return 1 if candidate and reference have equal normal forms, else 0."""
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return float(candidate == reference)


def lemod(example: Example, part: str, multiset: bool) -> float:
    """Compare the edited lines of candidate and reference.

    Precision is |C & R| / |C|, recall is |C & R| / |R|, for the edited lines C of the candidate and R of
    the reference; 0 / 0 counts as 0. Two empty edits are equal and get 1. A candidate without code gets 0.

    Args:
        example: The candidate and the reference, with their source.
        part: "precision", "recall" or "f1".
        multiset: Whether deleted and inserted lines, and repeated lines, are told apart.
    """
    found = edits(example)
    candidate, reference = (distinct_lines(edit, multiset) for edit in (found.candidate, found.reference))
    if found.no_code:
        return 0.0
    if not candidate and not reference:
        return 1.0
    return agreement((candidate & reference).total(), candidate.total(), reference.total(), part)


def agreement(common: int, edited: int, expected: int, part: str) -> float:
    """Compute precision, recall or F1; 0 / 0 counts as 0.

    Args:
        common: The number of lines in both edits.
        edited: The number of lines in the candidate's edit.
        expected: The number of lines in the reference's edit.
        part: "precision", "recall" or "f1".
    """
    over = {"precision": edited, "recall": expected, "f1": (edited + expected) / 2}[part]
    return common / over if over else 0.0


def distinct_lines(edit: list[str], multiset: bool) -> Counter[str]:
    """Count the lines of an edit without indentation; without `multiset`, each line counts once."""
    if multiset:
        return Counter(line[0] + line[1:].strip() for line in edit)
    return Counter({line.strip(): 1 for line in without_signs(edit)})
