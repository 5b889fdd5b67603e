"""Reader of candidates for code edits: JSON lines with a candidate or reply, the reference and the source.

The source is the code before it was edited; some metrics for code do not need it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.code.languages.language import find_language
from simllm.code.reply import ReplyCode, code_of_reply
from simllm.errors import InputError
from simllm.io import reading
from simllm.metrics.code import sheikhaei
from simllm.metrics.interface import Example

_MOST_NAMED = 100
_EFFECTS = {
    "failed requests": "they count as empty candidates",
    "replies without code": "they count as empty candidates",
    "ambiguous replies": "several blocks of code fit equally well, and the last one is judged",
}


@dataclass(frozen=True)
class CodeFields:
    """The names of the keys in a file.

    Attributes:
        candidate: A line may have the key `reply` instead: a language model's reply with the code in it, or
            null if the request failed for good, as `simllm generate` writes it.
        id: The key of the item's id; None if the lines need no id.
    """

    candidate: str = "candidate"
    reference: str = "reference"
    source: str = "source"
    id: str | None = None


@dataclass(frozen=True)
class CodeItem:
    """A candidate with its reference, read from a line.

    Attributes:
        id: A JSON value that identifies the item; None if ids are not read.
        has_code: False if the line has a reply without code; the candidate is then an empty text.
        is_ambiguous: True if the line has a reply in which several blocks of code fit equally well.
        is_failed: True if the line has no reply, because the request failed.
        row: The whole JSON object of the line.
        where: The place of the line for errors, such as "FILE, line 3".
    """

    example: Example
    id: Any
    has_code: bool
    is_ambiguous: bool
    is_failed: bool
    row: dict[str, Any]
    where: str


def read_items(
    file: Path,
    fields: CodeFields,
    language: str | None = None,
    needs_source: bool = False,
    as_published: bool = False,
) -> Iterator[CodeItem]:
    """Read the lines of a file, in order; a wrong line is an `InputError`, and so is an empty file.

    `language` is that of lines without one. `as_published` finds the code of replies like the published code
    of Sheikhaei et al.
    """
    if language is not None:
        # Before the first line, so that the message names no line.
        find_language(language)
    # Stays empty only if the file has no line.
    where = ""
    for where, row in reading.rows(file, {fields.candidate, fields.reference, fields.source, "language"}):
        has_none = row.get("language", "") == ""  # a table may have empty cells
        named = language if language and has_none else reading.text_under(row, "language", where)
        try:
            find_language(named)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        has_source = needs_source or fields.source in row
        source = reading.text_under(row, fields.source, where) if has_source else None
        is_failed = fields.candidate not in row and row.get("reply", "") is None and "failure" in row
        if is_failed:
            found = ReplyCode(None)
        elif fields.candidate in row or "reply" not in row:
            found = ReplyCode(reading.text_under(row, fields.candidate, where))
        else:
            reply = reading.text_under(row, "reply", where)
            try:
                found = (
                    ReplyCode(sheikhaei.code_of_reply(reply, named) or None)
                    if as_published
                    else code_of_reply(reply, named, source=source)
                )
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
        reference = reading.text_under(row, fields.reference, where)
        id_ = None if fields.id is None else reading.value_under(row, fields.id, where)
        example = Example(found.text or "", reference, source, named)
        yield CodeItem(example, id_, found.text is not None, found.is_ambiguous, is_failed, row, where)
    if not where:
        raise InputError(f"{file}: empty; expected {reading.ROWS}")


def describe_replies(items: Sequence[CodeItem]) -> dict[str, Any]:
    """Count, name and warn about failed requests, ambiguous replies and those without code.

    The result is empty if no line has a reply, and names failed requests only if there are some.
    """
    replies = [item for item in items if "reply" in item.row]
    if not replies:
        return {}
    failed = [one for one in replies if one.is_failed]
    without = [one for one in replies if not (one.has_code or one.is_failed)]
    return {
        **(_described("failed requests", failed, len(replies)) if failed else {}),
        **_described("replies without code", without, len(replies)),
        **_described("ambiguous replies", [one for one in replies if one.is_ambiguous], len(replies)),
    }


def _described(kind: str, items: Sequence[CodeItem], count: int) -> dict[str, Any]:
    if not items:
        return {kind: 0}
    names = [item.where.rpartition(", ")[2] if item.id is None else str(item.id) for item in items]
    more = f", … ({len(names) - _MOST_NAMED:,} more)" if len(names) > _MOST_NAMED else ""
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    warnings.warn(f"{kind}: {len(names):,} of {count:,}; {_EFFECTS[kind]} ({shown})", stacklevel=3)
    return {kind: len(names), f"{kind}, named": ", ".join(names[:_MOST_NAMED]) + more}
