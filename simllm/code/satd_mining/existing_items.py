"""Items of others, functions before and after a change, as a source of repayments."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from simllm.code.git_history import FileVersions
from simllm.code.languages.language import find_language
from simllm.code.satd_mining.comments import DebtWords
from simllm.code.satd_mining.repayments import RULES, Repayment, find_repayments
from simllm.code.satd_mining.selection import Funnel
from simllm.errors import InputError
from simllm.io import reading

_MARKS = ("#", "//", "/*", "*", "=begin")
_HASH_MARKED = ("python", "ruby")


class ExistingItems:
    """Items in a file of JSON lines, as a source of repayments.

    A line has `source` and `reference`, the function before and after a change, and `language`. If the
    comment that admits the debt is not in `source`, as in some data sets, it stands under `comment`. Other
    fields stay as they are; a missing `id` is a hash of the line.

    Args:
        languages: The languages that are kept; empty for all.
    """

    def __init__(self, file: Path, words: DebtWords, languages: Collection[str] = ()) -> None:
        self._file, self._words, self._languages = file, words, languages
        self._rows = list(self._read())
        if not self._rows:
            raise InputError(f"{file}: empty; expected items, a JSON object on each line")

    def funnel(self) -> Funnel:
        """Return a new funnel, without any counts of rules."""
        return Funnel(items=len(self._rows))

    def repayments(self, funnel: Funnel) -> Iterator[tuple[dict[str, Any], Repayment]]:
        """Yield each item that fulfils `RULES`, with its repayment; count all in `funnel`."""
        for row, versions in self._rows:
            found = list(find_repayments(versions, self._words))
            # An item counts once, by the comment that fulfils the most rules.
            fulfilled, repayment = max(found, key=lambda one: one[0], default=(0, None))
            funnel.count(versions.language, dict.fromkeys(RULES[:fulfilled], 1))
            if repayment:
                yield {**row, "comment": row.get("comment", repayment.comment)}, repayment

    def _read(self) -> Iterator[tuple[dict[str, Any], FileVersions]]:
        ids = dict[str, str]()
        for where, row in reading.objects(self._file):
            texts = [reading.text_under(row, name, where) for name in ("source", "reference", "language")]
            source, reference, language = texts
            try:
                find_language(language)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
            if self._languages and language not in self._languages:
                continue
            if "comment" in row:
                source = _with_comment(source, reading.text_under(row, "comment", where), language)
            content = json.dumps(row, sort_keys=True).encode()
            item = {"id": row.get("id", hashlib.sha256(content).hexdigest()[:16]), **row}
            if (known := ids.setdefault(str(item["id"]), where)) != where:
                raise InputError(f"{where}: has the id {item['id']!r} of {known}")
            # A function without its class and file, so that the name of the path does not matter.
            versions = FileVersions("", "", source.encode(), reference.encode(), language)
            yield item, versions


def _with_comment(source: str, comment: str, language: str) -> str:
    """Put a comment above a function in which it does not stand; without its marks, it gets some."""
    if _words(comment) in _words(source):
        return source
    mark = "#" if language in _HASH_MARKED else "//"
    lines = comment.strip().splitlines()
    if not comment.strip().startswith(_MARKS):
        lines = [f"{mark} {line}" for line in lines]
    return "\n".join([*lines, source])


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))
