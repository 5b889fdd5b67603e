"""Exact match, and LEMOD: precision, recall and F1 of edited lines (Sheikhaei et al.)."""

from __future__ import annotations

from collections import Counter

from simllm.code.normal_form import normal_forms
from simllm.metrics.code.compared_texts import edits, without_signs
from simllm.metrics.protocol import Example


def exact_match(example: Example) -> float:
    """Return 1 if candidate and reference have equal normal forms, else 0.

    A normal form is the code in a uniform layout, without comments, docstrings and imports.
    """
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return float(candidate == reference)


def lemod(example: Example, part: str, multiset: bool) -> float:
    """Compute LEMOD, which compares the candidate's edit of the source with the reference's edit.

    Let C be the lines that the candidate deletes or inserts, and R the lines that the reference deletes or
    inserts. Precision is |C & R| / |C|, and recall is |C & R| / |R|; 0 / 0 counts as 0. If C and R are empty,
    the score is 1. If the candidate has no code although the reference has, the score is 0.

    Args:
        example: The candidate and the reference, with their source.
        part: The value to compute: "precision", "recall" or "f1".
        multiset: If false, C and R are sets: a line counts once, and a deleted line may equal an inserted
            line. If true, they are multisets: a repeated line counts each time, and a deleted line never
            equals an inserted line.
    """
    found = edits(example)
    candidate, reference = (distinct_lines(edit, multiset) for edit in (found.candidate, found.reference))
    if found.no_code:
        return 0.0
    if not candidate and not reference:
        return 1.0
    return agreement((candidate & reference).total(), candidate.total(), reference.total(), part)


def agreement(common: int, edited: int, expected: int, part: str) -> float:
    """Compute precision, recall or F1 of the candidate's edited lines; 0 / 0 counts as 0.

    Args:
        common: The number of lines in both edits.
        edited: The number of lines in the candidate's edit.
        expected: The number of lines in the reference's edit.
        part: The value to compute: "precision", "recall" or "f1".
    """
    over = {"precision": edited, "recall": expected, "f1": (edited + expected) / 2}[part]
    return common / over if over else 0.0


def distinct_lines(edit: list[str], multiset: bool) -> Counter[str]:
    """Count how often each distinct line occurs in an edit; indentation is ignored.

    Args:
        edit: The deleted and inserted lines, each with its sign "-" or "+".
        multiset: Whether to respect signs and repetitions. Otherwise signs are ignored, and each distinct
            line counts once.
    """
    if multiset:
        return Counter(line[0] + line[1:].strip() for line in edit)
    return Counter({line.strip(): 1 for line in without_signs(edit)})
