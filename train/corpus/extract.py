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

    Args:
        code: The content of the file; any bytes are accepted.
        language: The programming language, such as "python" (a value of `LANGUAGE_OF_SUFFIX`).
        dropped: Counter of rejected comments by the name of the filter; it is updated. A file that is too
            large or generated yields no comments; it is counted as "file too large" or "generated file".
        on_dropped: Function that is called for each rejected comment or file. Its first argument is the name
            that is counted in `dropped`. Its second argument is the raw comment, the beginning of a generated
            file, or "" for a file that is too large.

    Raises:
        KeyError: The language is unknown.
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
    """Convert the raw documentation of a function to a `Comment`; return None if a filter rejects it.

    A `Comment` has the documentation as plain text, with its first sentence as the summary.

    Args:
        function: The parsed function with its raw documentation.
        language: The programming language.
        drop: Function that is called if a filter rejects the documentation. Its arguments are the name of the
            filter and the raw documentation.

    Returns:
        The `Comment`, in which the repository, the path and the licence are still "". None if a filter
        rejects the documentation.
    """
    paragraphs = prose_paragraphs.paragraphs(function.text, language)
    summary = first_sentence(paragraphs[0]).rstrip(" :") if paragraphs else ""
    description = "\n\n".join(paragraphs)
    if reason := rejecting_filter(DocumentedFunction(function, language, summary)):
        drop(reason, function.raw)
        return None
    more = description if description.rstrip(" :") != summary else ""
    return Comment(summary, more, language, function.name, overrides=function.supertypes)
