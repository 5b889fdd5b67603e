"""Extraction of the documentation of functions from source code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from simllm.code import languages
from simllm.code.languages import Function
from train.corpus import filters, markup
from train.corpus.comment import Comment
from train.corpus.summary import first_sentence

LANGUAGES = languages.LANGUAGES  # suffix of a file -> language
LARGEST = 1 << 20  # bytes; what is larger is data


def extract(
    code: bytes,
    language: str,
    dropped: Counter[str],
    on_dropped: Callable[[str, str], None] | None = None,
) -> Iterator[Comment]:
    """Yield the documented functions of a file, in order.

    `dropped` counts those that are left out, by the name of the filter; a file that is left out
    as a whole counts as one. `on_dropped` gets that name and the comment as it stands in the
    source. Any bytes will do; KeyError where the language is unknown.
    """

    def drop(name: str, text: str) -> None:
        dropped[name] += 1
        if on_dropped:
            on_dropped(name, text)

    if len(code) > LARGEST:
        return drop("file too large", "")
    if filters.generated(code):
        return drop("generated file", code[:300].decode(errors="replace"))
    for function in languages.load(language).functions(code.replace(b"\r\n", b"\n")):
        if comment := document(function, language, drop):
            yield comment
    return None


def document(function: Function, language: str, drop: Callable[[str, str], None]) -> Comment | None:
    """Return the documentation of a function, or None if a filter rejects it."""
    paragraphs = markup.paragraphs(function.text, language)
    summary = first_sentence(paragraphs[0]).rstrip(" :") if paragraphs else ""
    description = "\n\n".join(paragraphs)
    if reason := filters.reason(filters.Documented(function, language, summary)):
        drop(reason, function.raw)
        return None
    more = description if description.rstrip(" :") != summary else ""
    return Comment(summary, more, language, function.name, overrides=function.supertypes)
