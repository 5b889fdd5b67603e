"""Filters that reject unusable comments on functions, such as comments that are not English.

Rejected comments are counted by the name of the filter. A comment that no filter rejects has one or several
texts: its summary (first sentence) and its other paragraphs. Each text is cleaned, or rejected for a reason
such as "too long". Rejected texts are counted by reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from simllm.code.languages.language import Function
from simllm.text_cleaning import LONGEST, clean
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.english import is_english
from train.corpus.function_comment import Comment
from train.corpus.part_file import CommentTexts
from train.corpus.skip_counts import Tally

LONGEST_SUMMARY = 1_000  # characters; the longest sentence in Python's library has 664


@dataclass(frozen=True)
class DocumentedFunction:
    """A function with its documentation: the object that the filters accept or reject.

    Attributes:
        function: The parsed function with its raw documentation.
        language: The programming language.
        summary: The first sentence of the documentation, without markup; "" if there is none.
    """

    function: Function
    language: str
    summary: str


def rejecting_filter(documented: DocumentedFunction) -> str | None:
    """Return the name of the first filter that rejects a function's comment; None if all accept it."""
    return next((name for name, rejects in FILTERS.items() if rejects(documented)), None)


_TEST_NAME = re.compile(
    r"(?:^|\.)(?:test_|test[A-Z]|it_|(?:Test|Benchmark|Example|Fuzz)(?:[A-Z_]|$))"
    r"|(?:^|\.)(?:Test[A-Z]\w*|\w+Tests?(?:Case)?)\."
)
_TEST_HEAD = re.compile(
    r"(?:\s*@[\w.]+(?:\([^)]*\))?)*?\s*@(?:Test|ParameterizedTest|Before|After|BeforeEach|AfterEach)\b"
)
_OTHER = re.compile(
    r"(?m)^[ \t]*@(?:file(?:overview)?|module|license|typedef|callback|namespace|class|constructor|interface|"
    r"enum|event|preserve|extends|augments|mixin|package|record|struct)\b"
)
_INHERITED = re.compile(r"(?i)@inheritdoc\b|@override\b")
_IMPLEMENTS = re.compile(
    r"(?i)(?:[\w.]+ )?(?:implements|implementation of|overrides|inherited from|satisfies)(?: the)? [^\s(]+"
    r"(?:\([^()]*\))?(?: (?:interface|method))?\W*$|\(non-javadoc\)"
)
_LICENCE = re.compile(
    r"(?i)\bcopyright\b.{0,20}(?:\d{4}|\(c\)|©)|licen[cs]ed (?:under|to)|spdx-license|all rights reserved"
    r"|permission is hereby granted"
)
_DEPRECATED = re.compile(
    r"(?i)\W*deprecated\b"
    r"|(?:this|the) (?:method|function|class|api|constructor)s? (?:is|are|has been|was|will be)"
    r" (?:now )?deprecated"
)
_TODO = re.compile(r"\W*(?:TODO|FIXME|XXX|HACK|BUG|TBD)\b|(?i:to ?do\s*:)")
_TEMPLATE = re.compile(
    r"(?i)(?:todo )?auto-?generated (?:method|constructor|javadoc)|insert (?:description|documentation)|"
    r"(?:description|summary|\[?method description\]?|documentation) ?(?:here|goes here|of \w+ method)?\.?$|"
    r"missing (?:doc|description)|add (?:description|documentation)|no description"
)
_ACCESSOR = re.compile(
    r"(?i)(?:getter|setter|accessor|mutator)s?(?: method)?(?: (?:and|/|&) \w+)?(?: for| of)?"
    r"(?:\W+[\w$]+){1,3}\W*$"
)
_SEE = re.compile(
    r"(?i)\(?(?:see(?: also)?|refer to|same as|alias(?:es)? (?:of|for|to)|like)(?::| the)? [^\s(]+"
    r"(?:\([^()]*\))?\W*$"
)
_CODE = re.compile(
    r"(?!.*(?:\b[a-z]+ ){3})"  # prose
    r"(?:.*[=(].*[;{]$|\{.*\}$|[\w.$]+ ?:?=(?!=) ?\S|(?:if|for|while) ?\(|[\w.$>:-]+\([^)]*\);?$|"
    r"(?:return|import|var|let|const) [\w.]+;?$)"
)
_UNFINISHED = re.compile(  # the rest of the sentence was code, which was removed
    r".*\b(?:(?<!as )is|are|an?|the|of|and|or|by|(?:so|such) that|where|computes|calculates|performs|solves)$"
)
_WORD = re.compile(r"(?:\s|\A)\W*[A-Za-z]")
_TWO_WORDS = re.compile("[^a-z]*+[a-z][^ ]*+ .*[a-z]")


def _begins(pattern: re.Pattern[str]) -> Callable[[DocumentedFunction], bool]:
    """Make a filter that rejects a comment if a pattern matches the beginning of its first sentence.

    The filter is a function that returns true for the comments to reject.
    """
    return lambda documented: bool(pattern.match(documented.summary))


def _is_test(documented: DocumentedFunction) -> bool:
    """Return whether the name or the annotations of the function show that it is a test."""
    return bool(_TEST_NAME.search(documented.function.name) or _TEST_HEAD.match(documented.function.head))


def _documents_other_thing(documented: DocumentedFunction) -> bool:
    """Return whether a tag such as `@class` shows that the comment is not about the function.

    Such comments document a file, a class or a type. Only JavaScript, TypeScript and PHP have these tags.
    """
    return documented.language in ("javascript", "typescript", "php") and bool(
        _OTHER.search(documented.function.text)
    )


def _is_inherited(documented: DocumentedFunction) -> bool:
    """Return whether the comment only refers to the documentation of an overridden method.

    For example, the comment is only `{@inheritDoc}` or `Implements Runnable.run`.
    """
    return bool(
        _IMPLEMENTS.match(documented.summary)
        if documented.summary
        else _INHERITED.search(documented.function.raw)
    )


# The filters by name, in the order of use. A rejected comment counts under the first filter that rejects it.
FILTERS: dict[str, Callable[[DocumentedFunction], bool]] = {
    "test": _is_test,
    "about something else": _documents_other_thing,
    "inherited": _is_inherited,
    "no prose": lambda documented: not documented.summary,
    "too long": lambda documented: len(documented.summary) > LONGEST_SUMMARY,
    "licence": lambda documented: bool(_LICENCE.search(documented.summary)),
    "deprecated": _begins(_DEPRECATED),
    "template": _begins(_TEMPLATE),
    "to do": _begins(_TODO),
    "accessor": _begins(_ACCESSOR),
    "see also": _begins(_SEE),
    "code": _begins(_CODE),
    "unfinished": _begins(_UNFINISHED),
    "not English": lambda documented: not is_english(documented.summary),
    "fewer than two words": lambda documented: len(_WORD.findall(documented.summary)) < 2,
}


def clean_texts(comment: Comment, excluded: ExcludedTexts, tally: Tally) -> CommentTexts:
    """Clean the summary and the further paragraphs of a comment, and leave out unusable texts.

    Args:
        comment: The comment.
        excluded: Evaluation texts to leave out.
        tally: Counter of texts that are read or left out; it is updated.

    Returns:
        The comment with its cleaned texts. If all texts were left out, it has no texts.
    """
    rest = comment.description.removeprefix(comment.summary).lstrip(" :")
    paragraphs = [text for text in re.split(r"\n\s*\n", rest) if text.strip()]
    summary, *others = (_clean_text(text, excluded, tally) for text in (comment.summary, *paragraphs))
    return CommentTexts(vars(comment), summary, [text for text in others if text])


def _clean_text(raw: str, excluded: ExcludedTexts, tally: Tally) -> str:
    """Clean the summary or a further paragraph of a comment, or reject it.

    The text is rejected if it is too long, has fewer than two words, or matches an excluded text.

    Args:
        raw: The text: the summary, or a paragraph.
        excluded: Evaluation texts that must not be in the corpus. `ExcludedTexts` defines what matches.
        tally: Counter of texts that are read, and of rejected texts by reason; it is updated.

    Returns:
        The cleaned text; "" if it is rejected.
    """
    tally.counts["read"] += 1
    if len(raw) > LONGEST:
        tally.add("too long", raw)
        return ""
    text = clean(raw)
    if not _TWO_WORDS.match(text):
        tally.add("fewer than two words", raw)
    elif text in excluded:
        tally.add("in a rated set", text)
    else:
        return text
    return ""
