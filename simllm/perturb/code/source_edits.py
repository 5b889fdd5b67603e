"""Edits of a source text, and the pieces that make up an edited text.

A rewrite rule describes each rewrite by edits. An edit replaces a range of bytes of the source by a list of
pieces. A piece is either new bytes or another range of the source. Such a range is copied with all edits that
lie inside it, so that code can be moved and edited at the same time. For example, one edit swaps the two
operands of `a < b`, and another edit renames `a`.
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
    """The replacement of a range of bytes in a source.

    The replacement may contain copies of ranges of the source, for example to swap two operands. If another
    edit lies inside a copied range, the copy is edited, too. Apart from this case, edits that are applied
    together should not overlap.

    Attributes:
        start: The index of the first byte to replace.
        end: The index after the last byte to replace; equal to `start` for an insertion.
        parts: The replacement. Bytes are new text; a span is a range of the source that is copied.
    """

    start: int
    end: int
    parts: tuple[bytes | Span, ...]


class Piece(NamedTuple):
    """A piece of an edited text: either new text, or text that comes from the source.

    Attributes:
        text: The bytes of the piece.
        start: The index in the source at which the same bytes begin; None for new text.
    """

    text: bytes
    start: int | None


class TextEdit(NamedTuple):
    """The replacement of a range of characters in a source.

    Attributes:
        start: The index of the first character to replace.
        end: The index after the last character to replace.
        text: The new text.
    """

    start: int
    end: int
    text: str


def apply_edits(text: bytes, edits: Iterable[Edit]) -> list[Piece]:
    """Apply edits to a source, and return the new text as a list of pieces.

    A piece is either new text or text from the source. The new text of an edit may contain copies of spans
    (ranges) of the source. Other edits inside a span are applied to its copies, too. For example, one edit
    swaps `a + 1` and `b`, and another edit renames `a`. Then the moved `a` is renamed.

    Two kinds of edits are not applied to the copies of a span:

    - an edit that replaces the whole span;
    - an insertion directly after the last byte of the span. If the span is empty, an insertion at its
      position is applied to the copies.

    Apart from edits inside copied spans, edits should not overlap. If two edits overlap anyway, only the one
    that begins first is applied.

    Args:
        text: The source.
        edits: The edits, in any order. Insertions at the same byte keep their order.

    Returns:
        The pieces of the new text, from its beginning to its end.

    Raises:
        ValueError: An edit begins inside a copied span, after its first byte, and ends after the span.
    """
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.start != edit.end, -edit.end))
    starts = [edit.start for edit in ordered]
    pieces: list[Piece] = []

    def render(start: int, end: int, first: int) -> None:
        """Apply the edits inside a range of the source, and append the edited text to the list `pieces`.

        Args:
            start: The index of the first byte of the range.
            end: The index after the last byte of the range.
            first: The index of the first edit that may be applied, in the list `ordered` of all edits. An
                edit can copy a part of the range that it replaces. The edit must not be applied to its own
                copy again, so `first` is then the index after this edit.
        """
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

    render(0, len(text) + 1, 0)  # one more, for insertions at the end of the text
    return pieces


def compose(first: list[Piece], second: list[Piece]) -> list[Piece]:
    """Combine the pieces of two successive rounds of edits, as if all edits were made in one round.

    A piece is either copied text or new text. The `start` of copied text is the position from which it was
    copied. The `start` of new text is None.

    Args:
        first: The pieces of the text after the first round, with positions in the original source.
        second: The pieces of the text after the second round, with positions in the text after the first
            round.

    Returns:
        The pieces of the text after the second round, with positions in the original source.
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
    """Return the edits that turn a source into an edited text, ordered by position.

    These edits cannot express moves. If two pieces of code were swapped, the piece that now comes second
    counts as new text.

    Args:
        source: The source.
        pieces: The pieces of the edited text. Each is new text, or text with its position in the source.
    """
    edits: list[TextEdit] = []
    at = characters = 0  # the end of the processed source, in bytes and in characters
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
    """Return, for each line of an edited text, the number of the source line from which it comes.

    Line numbers count from 1. If a line has code from several source lines, the code that comes first in the
    line decides. A line without code from the source gets None. A line break at the end of the text begins no
    further line.

    Args:
        source: The source.
        pieces: The pieces of the edited text. Each is new text, or text with its position in the source.
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
