"""The texts that metrics for code compare: whole candidates and references, or only their edited lines.

The source is the code before an edit. The candidate and the reference are two edited versions of the source.
The edited lines of a version are the lines that were deleted from the source or inserted into it. All
compared texts are in normal form: code in a uniform layout, without comments, docstrings and imports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from simllm.code.code_normalization import normal_forms
from simllm.code.line_diff import line_edit
from simllm.metrics.metric_interface import Example

_CACHED = 1024  # edits; several metrics score the same examples
TextScore = Callable[[str, str], float]  # takes the text of the candidate and that of the reference


@dataclass(frozen=True)
class Edits:
    """The lines of code that a candidate deletes or inserts, and those that the reference deletes or inserts.

    Both are compared with the source, which is the code before a change. The candidate and the reference are
    two versions of the code after the change. Source, candidate and reference are first converted to a normal
    form, which has no comments, docstrings and imports, and a uniform layout.

    Attributes:
        candidate: The lines that the candidate deletes or inserts. A deleted line has the sign "-" before it,
            an inserted line the sign "+".
        reference: The lines that the reference deletes or inserts, in the same form.
        no_code: True if the normal form of the candidate is empty, but not that of the reference.
    """

    candidate: list[str]
    reference: list[str]
    no_code: bool


@lru_cache(_CACHED)
def edits(example: Example) -> Edits:
    """Find the lines of code that an example's candidate and its reference delete or insert.

    Both are compared with the example's source, which is the code before it was edited. Lines are compared
    after normalization, which removes comments, docstrings and imports, and makes the layout uniform.
    """
    language = example.language or ""
    pair = normal_forms([example.candidate, example.reference], language)
    # Equal normal forms must have equal edits, even if the source does not parse, so that layout counts.
    own = example.reference if pair[0] == pair[1] else example.candidate
    source, candidate, reference = normal_forms([example.source or "", own, example.reference], language)
    no_code = bool(reference) and not candidate
    return Edits(line_edit(source, candidate), line_edit(source, reference), no_code)


def compare_whole(example: Example, score: TextScore) -> float:
    """Score the whole candidate against the whole reference, after normalization of both.

    Normalization removes comments, docstrings and imports, and makes the layout uniform.

    Args:
        example: The candidate and the reference, with their language.
        score: The function that scores a candidate text against a reference text.

    Returns:
        The score. After normalization, two empty texts score 1, and an empty and a non-empty text score 0.
    """
    return _compare(*whole_lines(example), score)


def whole_lines(example: Example) -> tuple[list[str], list[str]]:
    """Return the lines of the candidate and the lines of the reference, after normalization of both.

    Normalization removes comments, docstrings and imports, and makes the layout uniform.
    """
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return candidate, reference


def compare_edits(example: Example, score: TextScore) -> float:
    """Score the candidate's edited lines against the reference's edited lines.

    The source is the code before an edit. The candidate and the reference are two edited versions of the
    source. The edited lines of a version are the lines that were deleted from the source or inserted into it.

    Args:
        example: The candidate and the reference, with their source and language.
        score: The function that scores a candidate text against a reference text.

    Returns:
        The score. It is 1 if neither the candidate nor the reference has edited lines. It is 0 if only one of
        the two has edited lines, or if the candidate has no code although the reference has some.
    """
    return 0.0 if edits(example).no_code else _compare(*edited_lines(example), score)


def edited_lines(example: Example) -> tuple[list[str], list[str]]:
    """Return the list of the candidate's edited lines, and the list of the reference's edited lines.

    The source is the code before an edit. The candidate and the reference are two edited versions of the
    source. The edited lines of a version are the lines that were deleted from the source or inserted into it.
    The returned lines have no sign "-" or "+" before them.
    """
    found = edits(example)
    return without_signs(found.candidate), without_signs(found.reference)


def _compare(candidate: list[str], reference: list[str], score: TextScore) -> float:
    if not candidate or not reference:
        return float(not candidate and not reference)
    return score("\n".join(candidate), "\n".join(reference))


def without_signs(edit: Sequence[str]) -> list[str]:
    """Return the lines of an edit without the sign "-" (deleted) or "+" (inserted) before each line."""
    return [line[1:] for line in edit]
