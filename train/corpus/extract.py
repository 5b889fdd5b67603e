"""Extraction of documentation comments from source code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from simllm.code.languages.language import Function
from simllm.code.languages.language_registry import load_language
from train.corpus import prose_paragraphs
from train.corpus.comment_filters import DocumentedFunction, rejecting_filter
from train.corpus.first_sentence import first_sentence
from train.corpus.function_comment import Comment
from train.corpus.source_file_filters import LARGEST, is_generated


def extract(
    code: bytes,
    language: str,
    dropped: Counter[str],
    on_dropped: Callable[[str, str], None] | None = None,
) -> Iterator[Comment]:
    """Yield the comments of the documented functions in a source file, in the order of the file.

    `dropped` counts rejected comments by the filter, and also a file that is too large or generated.
    `on_dropped` is called with the same name and the raw comment or the beginning of the file. Raises
    KeyError for an unknown language.
    """

    def drop(name: str, text: str) -> None:
        dropped[name] += 1
        if on_dropped:
            on_dropped(name, text)

    if len(code) > LARGEST:
        return drop("file too large", "")
    if is_generated(code):
        return drop("generated file", code[:300].decode(errors="replace"))
    for function in load_language(language).functions(code.replace(b"\r\n", b"\n")):
        if comment := make_comment(function, language, drop):
            yield comment
    return None


def make_comment(function: Function, language: str, drop: Callable[[str, str], None]) -> Comment | None:
    """Convert the raw documentation of a function; if a filter rejects it, call `drop` and return None.

    The repository, the path and the licence of the comment are still "".
    """
    paragraphs = prose_paragraphs.paragraphs(function.text, language)
    summary = first_sentence(paragraphs[0]).rstrip(" :") if paragraphs else ""
    description = "\n\n".join(paragraphs)
    if reason := rejecting_filter(DocumentedFunction(function, language, summary)):
        drop(reason, function.raw)
        return None
    # A description that only repeats the summary would be stored twice.
    more = description if description.rstrip(" :") != summary else ""
    return Comment(summary, more, language, function.name, overrides=function.supertypes)
