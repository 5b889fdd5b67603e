"""Edits of a source text, and the pieces that an edited text consists of.

A rule describes each rewrite as edits of the bytes of a source. The new text of an edit consists of new
bytes and of spans of the source, so that code can be moved or copied together with the edits inside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple


class Span(NamedTuple):
    """A range of bytes in a source: from `start` up to, but not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of a range of bytes.

    Edits of one pass are disjoint, or the inner edit lies in a span that the outer edit keeps.

    Attributes:
        start: The first byte that is replaced.
        end: The byte after the last byte that is replaced; equal to `start` for an insertion.
        parts: The new text: new bytes, and spans of the source that are moved or copied here.
    """

    start: int
    end: int
    parts: tuple[bytes | Span, ...]


class Piece(NamedTuple):
    """A piece of an edited text.

    Attributes:
        text: The bytes.
        start: The first byte of the same text in the source, or None if the text is new.
    """

    text: bytes
    start: int | None


class TextEdit(NamedTuple):
    """The replacement of a range of characters.

    Attributes:
        start: The first character that is replaced.
        end: The character after the last character that is replaced.
        text: The new text.
    """

    start: int
    end: int
    text: str


def apply_edits(text: bytes, edits: Iterable[Edit]) -> list[Piece]:
    """Apply edits to a text and return the pieces of the new text.

    Args:
        text: The source.
        edits: The edits. Insertions at the same byte keep their order. An insertion at the end of a span
            does not belong to the span, unless the span is empty. Where a span is moved, an edit of the
            whole span is not applied.

    Raises:
        ValueError: Two edits overlap.
    """
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.start != edit.end, -edit.end))
    starts = [edit.start for edit in ordered]
    pieces: list[Piece] = []

    def render(start: int, end: int, first: int) -> None:
        """Add the pieces of a span; the edits before number `first` are not inside the span."""
        at = start
        for number in range(max(bisect_left(starts, start), first), len(ordered)):
            edit = ordered[number]
            if edit.start >= max(end, start + 1):
                break
            if edit.start < at or (edit.start == start and edit.start < edit.end >= end):
                continue  # inside the edit before, or the span's own replacement
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

    render(0, len(text) + 1, 0)  # with the insertions at the end of the text
    return pieces


def compose(first: list[Piece], second: list[Piece]) -> list[Piece]:
    """Return the pieces of a text that was edited twice, with their places in the first source.

    Args:
        first: The pieces after the first pass.
        second: The pieces after the second pass; their `start` counts in the text after the first pass.
    """
    starts = list(accumulate((len(piece.text) for piece in first), initial=0))
    composed: list[Piece] = []
    for piece in second:
        if piece.start is None or not piece.text:
            composed.append(Piece(piece.text, None))
            continue
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
    """Return the edits that turn a source into the text of the pieces, in their order.

    Moved code that stands before code that it followed in the source counts as new.
    """
    edits: list[TextEdit] = []
    at = characters = 0  # what of the source is done, in bytes and in characters
    new = b""
    for piece in [*pieces, Piece(b"", len(source))]:
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
    """Return the line of the source that each line of the edited text comes from, counted from 1.

    A line with code of several lines is mapped to the line of its first code; a line that is all new, to
    None.
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
    return lines
