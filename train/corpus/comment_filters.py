"""Filters that reject unusable comments, such as comments that are not English, and unusable texts.

Rejected comments are counted by the name of the filter, rejected texts by the reason.
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

# Characters; the longest sentence in Python's library has 664.
LONGEST_SUMMARY = 1_000


@dataclass(frozen=True)
class DocumentedFunction:
    """A function with its raw documentation; the summary is without markup, "" if there is none."""

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
# The rest of the sentence was code, which was removed.
_UNFINISHED = re.compile(
    r".*\b(?:(?<!as )is|are|an?|the|of|and|or|by|(?:so|such) that|where|computes|calculates|performs|solves)$"
)
_WORD = re.compile(r"(?:\s|\A)\W*[A-Za-z]")
_TWO_WORDS = re.compile("[^a-z]*+[a-z][^ ]*+ .*[a-z]")


def _begins(pattern: re.Pattern[str]) -> Callable[[DocumentedFunction], bool]:
    """Make a filter that rejects a comment if the pattern matches the beginning of its summary."""
    return lambda documented: bool(pattern.match(documented.summary))


def _is_test(documented: DocumentedFunction) -> bool:
    return bool(_TEST_NAME.search(documented.function.name) or _TEST_HEAD.match(documented.function.head))


def _documents_other_thing(documented: DocumentedFunction) -> bool:
    """Return whether a tag such as `@class` shows that the comment documents a file, a class or a type."""
    # Only these languages have such tags.
    return documented.language in ("javascript", "typescript", "php") and bool(
        _OTHER.search(documented.function.text)
    )


def _is_inherited(documented: DocumentedFunction) -> bool:
    """Return whether the comment is only `{@inheritDoc}`, `Implements Runnable.run` or the like."""
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
    """Clean the texts of a comment, and leave out unusable ones."""
    rest = comment.description.removeprefix(comment.summary).lstrip(" :")
    paragraphs = [text for text in re.split(r"\n\s*\n", rest) if text.strip()]
    summary, *others = (_clean_text(text, excluded, tally) for text in (comment.summary, *paragraphs))
    return CommentTexts(vars(comment), summary, [text for text in others if text])


def _clean_text(raw: str, excluded: ExcludedTexts, tally: Tally) -> str:
    """Clean one text; "" if it is too long, has fewer than two words, or is an excluded text."""
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
