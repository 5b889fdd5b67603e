"""Edits of a source text, and the pieces that make up an edited text.

A copied span is copied with all edits inside it, so that code can be moved and edited at the same time. For
example, one edit swaps the two operands of `a < b`, and another edit renames `a`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple


class Span(NamedTuple):
    """A range of bytes in a source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of a range of bytes by new bytes and copied spans; an insertion if the range is empty.

    Edits that are applied together should not overlap, except edits inside a copied span.
    """

    start: int
    end: int
    parts: tuple[bytes | Span, ...]


class Piece(NamedTuple):
    """A piece of an edited text; `start` is its index in the source, or None for new text."""

    text: bytes
    start: int | None


class TextEdit(NamedTuple):
    """The replacement of a range of characters (not bytes) in a source."""

    start: int
    end: int
    text: str


def apply_edits(text: bytes, edits: Iterable[Edit]) -> list[Piece]:
    """Apply edits, given in any order, to a source; insertions at the same byte keep their order.

    A copied span is edited, too, except by an edit that replaces the whole span, and by an insertion directly
    after it. Of other overlapping edits, only the one that begins first is applied. An edit that begins
    inside a copied span and ends after it raises `ValueError`.
    """
    # At one byte, insertions come first, and the longest replacement before those inside it.
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.start != edit.end, -edit.end))
    starts = [edit.start for edit in ordered]
    pieces: list[Piece] = []

    def render(start: int, end: int, first: int) -> None:
        """Append the edited text of a range to `pieces`, with the edits from index `first` on."""
        at = start
        # Without `first`, an edit that copies part of the range that it replaces would be applied to its own
        # copy without end.
        for number in range(max(bisect_left(starts, start), first), len(ordered)):
            edit = ordered[number]
            # An empty span still takes the insertions at its position.
            if edit.start >= max(end, start + 1):
                break
            if edit.start < at or (edit.start == start and edit.start < edit.end >= end):
                # Inside the edit before, or the replacement of the whole span.
                continue
            if edit.end > end:
                raise ValueError(f"edits overlap at byte {edit.start}")
            if edit.start > at:
                pieces.append(Piece(text[at : edit.start], at))
            for part in edit.parts:
                if isinstance(part, bytes):
                    pieces.append(Piece(part, None))
                else:
                    render(*part, number + 1 if edit.start <= part.start <= edit.end else 0)
            at = edit.end
        if at < end:
            pieces.append(Piece(text[at:end], at))

    # One byte more than the text, for insertions at its end.
    render(0, len(text) + 1, 0)
    return pieces


def compose(first: list[Piece], second: list[Piece]) -> list[Piece]:
    """Combine the pieces of two successive rounds of edits, as if all edits were made in one round.

    The positions of the second round count in the text after the first round; those of the result, in the
    source.
    """
    starts = list(accumulate((len(piece.text) for piece in first), initial=0))
    composed: list[Piece] = []
    for piece in second:
        if piece.start is None or not piece.text:
            composed.append(Piece(piece.text, None))
            continue
        # A copied piece of the second round may span several pieces of the first.
        number = bisect_right(starts, piece.start) - 1
        at, end = piece.start, piece.start + len(piece.text)
        while at < end:
            origin = first[number]
            stop = min(end, starts[number + 1])
            skipped = at - starts[number]
            start = None if origin.start is None else origin.start + skipped
            if stop > at:
                composed.append(Piece(origin.text[skipped : skipped + stop - at], start))
            at, number = stop, number + 1
    return composed


def text_edits(source: bytes, pieces: list[Piece]) -> list[TextEdit]:
    """Return the edits that turn a source into an edited text, ordered by position.

    Moves cannot be expressed: of two swapped pieces, the one that now comes second counts as new text.
    """
    edits: list[TextEdit] = []
    at = characters = 0  # the end of the processed source, in bytes and in characters
    new = b""
    for piece in [*pieces, Piece(b"", len(source))]:
        # A piece from before `at` was moved, or is the second copy of a span.
        if piece.start is None or piece.start < at:
            new += piece.text
            continue
        end = characters + len(source[at : piece.start].decode())
        if new or end > characters:
            edits.append(TextEdit(characters, end, new.decode()))
        at = piece.start + len(piece.text)
        characters, new = end + len(piece.text.decode()), b""
    return edits


def line_map(source: bytes, pieces: list[Piece]) -> list[int | None]:
    """Return the source line, counted from 1, of each line of an edited text; None for new lines.

    If a line has code from several source lines, its first code decides. A line break at the end begins no
    line.
    """
    breaks = [found.start() for found in re.finditer(b"\n", source)]
    lines: list[int | None] = [None]
    for piece in pieces:
        at = 0
        for part in piece.text.split(b"\n"):
            if at:
                lines.append(None)
            if piece.start is not None and part.strip() and lines[-1] is None:
                lines[-1] = bisect_left(breaks, piece.start + at) + 1
            at += len(part) + 1
    text = b"".join(piece.text for piece in pieces)
    return lines[:-1] if not text or text.endswith(b"\n") else lines
