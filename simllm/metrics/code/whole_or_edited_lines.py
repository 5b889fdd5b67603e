"""The texts that metrics for code compare: whole candidates and references, or only their edited lines."""

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
    """The edited lines of candidate and reference, each with its sign "-" (deleted) or "+" (inserted).

    Attributes:
        no_code: True if the normal form of the candidate is empty, but not that of the reference.
    """

    candidate: list[str]
    reference: list[str]
    no_code: bool


@lru_cache(_CACHED)
def edits(example: Example) -> Edits:
    """Find the edited lines of an example's candidate and of its reference."""
    language = example.language or ""
    pair = normal_forms([example.candidate, example.reference], language)
    # Equal normal forms must have equal edits, even if the source does not parse, so that layout counts.
    own = example.reference if pair[0] == pair[1] else example.candidate
    source, candidate, reference = normal_forms([example.source or "", own, example.reference], language)
    no_code = bool(reference) and not candidate
    return Edits(line_edit(source, candidate), line_edit(source, reference), no_code)


def compare_whole(example: Example, score: TextScore) -> float:
    """Score the normal forms of candidate and reference.

    Two empty texts score 1; an empty and a non-empty text score 0.
    """
    return _compare(*whole_lines(example), score)


def whole_lines(example: Example) -> tuple[list[str], list[str]]:
    """Return the lines of the normal forms of candidate and reference."""
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return candidate, reference


def compare_edits(example: Example, score: TextScore) -> float:
    """Score the candidate's edited lines against the reference's edited lines.

    The score is 1 if neither has edited lines. It is 0 if only one of the two has, or if only the candidate
    has no code.
    """
    # An empty candidate deletes every line, which would match the lines that the reference deletes.
    return 0.0 if edits(example).no_code else _compare(*edited_lines(example), score)


def edited_lines(example: Example) -> tuple[list[str], list[str]]:
    """Return the edited lines of candidate and reference, without signs."""
    found = edits(example)
    return without_signs(found.candidate), without_signs(found.reference)


def _compare(candidate: list[str], reference: list[str], score: TextScore) -> float:
    if not candidate or not reference:
        return float(not candidate and not reference)
    return score("\n".join(candidate), "\n".join(reference))


def without_signs(edit: Sequence[str]) -> list[str]:
    """Return the lines of an edit without the sign "-" (deleted) or "+" (inserted) before each line."""
    return [line[1:] for line in edit]
