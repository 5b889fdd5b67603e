"""Two metrics for edits of code: exact match, and LEMOD (Sheikhaei et al.).

LEMOD is the precision, recall or F1 of the candidate's edited lines.
"""

from __future__ import annotations

from collections import Counter

from simllm.code.code_normalization import normal_forms
from simllm.metrics.code.whole_or_edited_lines import edits, without_signs
from simllm.metrics.metric_interface import Example


def exact_match(example: Example) -> float:
    """Return 1 if candidate and reference have equal normal forms, else 0."""
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return float(candidate == reference)


def lemod(example: Example, part: str, multiset: bool) -> float:
    """Compute LEMOD: "precision", "recall" or "f1" of the candidate's edited lines.

    The score is 1 if neither version edits a line, and 0 if only the candidate has no code. See
    `distinct_lines` for `multiset`.
    """
    found = edits(example)
    candidate, reference = (distinct_lines(edit, multiset) for edit in (found.candidate, found.reference))
    if found.no_code:
        return 0.0
    if not candidate and not reference:
        return 1.0
    return agreement((candidate & reference).total(), candidate.total(), reference.total(), part)


def agreement(common: int, edited: int, expected: int, part: str) -> float:
    """Compute "precision", "recall" or "f1" from numbers of edited lines; 0 / 0 counts as 0.

    `common` lines are those of both, `edited` those of the candidate, `expected` those of the reference.
    """
    over = {"precision": edited, "recall": expected, "f1": (edited + expected) / 2}[part]
    return common / over if over else 0.0


def distinct_lines(edit: list[str], multiset: bool) -> Counter[str]:
    """Count the edited lines, each with its sign "-" or "+", without white space at both ends.

    With `multiset`, repeated lines are counted, and "-x" differs from "+x". Otherwise the sign is removed,
    and each distinct line counts once.
    """
    if multiset:
        return Counter(line[0] + line[1:].strip() for line in edit)
    return Counter({line.strip(): 1 for line in without_signs(edit)})
