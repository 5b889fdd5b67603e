"""Filters that reject unusable comments. Each has a name, under which its comments are counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from simllm.code.languages import Function
from train.corpus.english import english

LONGEST_SUMMARY = 1_000  # characters; the longest sentence in Python's library has 664


@dataclass(frozen=True)
class Documented:
    """A function and the prose of its comment."""

    function: Function
    language: str
    summary: str


def reason(found: Documented) -> str | None:
    """Return the name of the first filter that rejects a comment, None if the comment is kept."""
    return next((name for name, takes in FILTERS.items() if takes(found)), None)


def generated(code: bytes) -> bool:
    """Return whether a program wrote a file: its header says so, or its lines are too long."""
    minified = len(code) > 200 * (code.count(b"\n") + 1)
    return minified or bool(_GENERATED.search(code[:2000]))


_GENERATED = re.compile(
    rb"(?m)^\W*(?:[Tt]his (?:file|code|class|module) (?:is|was|has been) (?:an? )?"
    rb"(?:auto(?:matically)?[- ]?)?generated"
    rb"|Code generated|Generated (?:by|from|with|using)\b"
    rb"|A(?i:uto(?:matically)?[- ]?generated)(?: (?:by(?! Eclipse)|from|with|using|file|code)|\W*$|\.)"
    rb"|@generated\b[^(])"
    rb"|\bD(?i:o not) (?i:edit|modify)\b(?:\W*$| (?:this file|manually|by hand|directly))"
)
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
_UNFINISHED = re.compile(  # code, which is gone, went on
    r".*\b(?:(?<!as )is|are|an?|the|of|and|or|by|(?:so|such) that|where|computes|calculates|performs|solves)$"
)
_WORD = re.compile(r"(?:\s|\A)\W*[A-Za-z]")


def _begins(pattern: re.Pattern[str]) -> Callable[[Documented], bool]:
    return lambda found: bool(pattern.match(found.summary))


def _test(found: Documented) -> bool:
    return bool(_TEST_NAME.search(found.function.name) or _TEST_HEAD.match(found.function.head))


def _other(found: Documented) -> bool:
    return found.language in ("javascript", "typescript", "php") and bool(_OTHER.search(found.function.text))


def _inherited(found: Documented) -> bool:
    return bool(_IMPLEMENTS.match(found.summary) if found.summary else _INHERITED.search(found.function.raw))


# In this order: a comment is counted under the first filter that rejects it.
FILTERS: dict[str, Callable[[Documented], bool]] = {
    "test": _test,
    "about something else": _other,
    "inherited": _inherited,
    "no prose": lambda found: not found.summary,
    "too long": lambda found: len(found.summary) > LONGEST_SUMMARY,
    "licence": lambda found: bool(_LICENCE.search(found.summary)),
    "deprecated": _begins(_DEPRECATED),
    "template": _begins(_TEMPLATE),
    "to do": _begins(_TODO),
    "accessor": _begins(_ACCESSOR),
    "see also": _begins(_SEE),
    "code": _begins(_CODE),
    "unfinished": _begins(_UNFINISHED),
    "not English": lambda found: not english(found.summary),
    "fewer than two words": lambda found: len(_WORD.findall(found.summary)) < 2,
}
