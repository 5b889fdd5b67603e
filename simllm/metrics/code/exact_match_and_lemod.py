"""Two metrics for edits of code: exact match, and LEMOD (Sheikhaei et al.).

LEMOD compares two edits of the same source code: the candidate's edit and the reference's edit. The score is
the precision, recall or F1 of the lines that the candidate's edit deletes or inserts.
"""

from __future__ import annotations

from collections import Counter

from simllm.code.code_normalization import normal_forms
from simllm.metrics.code.whole_or_edited_lines import edits, without_signs
from simllm.metrics.metric_interface import Example


def exact_match(example: Example) -> float:
    """Return 1 if candidate and reference have equal normal forms, else 0.

    A normal form is the code in a uniform layout, without comments, docstrings and imports.
    """
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return float(candidate == reference)


def lemod(example: Example, part: str, multiset: bool) -> float:
    """Compute LEMOD, which compares the candidate's edit of the source code with the reference's edit.

    Let C be the lines that the candidate deletes or inserts, and R the lines that the reference deletes or
    inserts. Precision is |C & R| / |C|, and recall is |C & R| / |R|. F1 is their harmonic mean. There are
    three special cases:

    - 0 / 0 counts as 0.
    - If C and R are empty, the score is 1.
    - If the candidate has no code although the reference has some, the score is 0.

    Args:
        example: The candidate and the reference, with their source (the code before the edit).
        part: The value to compute: "precision", "recall" or "f1".
        multiset: False: C and R are sets. A repeated line counts once, and it does not matter whether a line
            is deleted or inserted. True: C and R are multisets. A repeated line counts each time, and a
            deleted line differs from an inserted line with the same text.
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

    The source is the code before an edit. The candidate and the reference are two edited versions of the
    source. The edited lines of a version are the lines that were deleted from the source or inserted into it.

    Args:
        common: The number of edited lines that candidate and reference have in common.
        edited: The number of the candidate's edited lines.
        expected: The number of the reference's edited lines.
        part: The value to compute: "precision", "recall" or "f1".
    """
    over = {"precision": edited, "recall": expected, "f1": (edited + expected) / 2}[part]
    return common / over if over else 0.0


def distinct_lines(edit: list[str], multiset: bool) -> Counter[str]:
    """Count the lines that an edit deletes or inserts, so that two edits can be compared.

    Whitespace at the beginning and the end of a line is ignored.

    Args:
        edit: The deleted and inserted lines, each with the sign "-" or "+" before it.
        multiset: True: repeated lines are counted, and the sign belongs to the line. Therefore "-x" and "+x"
            are different lines. False: the sign is removed, and each distinct line has the count 1.

    Returns:
        The count of each distinct line.
    """
    if multiset:
        return Counter(line[0] + line[1:].strip() for line in edit)
    return Counter({line.strip(): 1 for line in without_signs(edit)})
