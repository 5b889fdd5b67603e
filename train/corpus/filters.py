"""What documents a function and is of no use all the same: named, so that each can be counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from train.corpus.languages import Function


@dataclass(frozen=True)
class Documented:
    """A function and the prose of its comment."""

    function: Function
    language: str
    summary: str
    description: str


def reason(found: Documented) -> str | None:
    """Return the name of the first filter that takes a comment, None where it is kept."""
    return next((name for name, takes in FILTERS.items() if takes(found)), None)


def generated(code: bytes) -> bool:
    """Say whether a file was written by a program: its header says so, or its lines are too long."""
    minified = len(code) > 200 * (code.count(b"\n") + 1)
    return minified or bool(_GENERATED.search(code[:2000]))


_GENERATED = re.compile(
    rb"(?m)^\W*(?:[Tt]his \w+ (?:is|was|has been) |[Cc]ode )?(?:an? )?(?:[Aa]uto(?:matically)?[- ]?)?"
    rb"(?:[Gg]enerated|GENERATED)(?:\W+file|\W+code| by| from| with| using|[^\n]* DO NOT EDIT|\s*[.;!\n])"
    rb"|^\W*@generated\b[^(]|\bD(?i:o not) (?i:edit|modify)\b(?:\W*$| (?:this file|manually|by hand|directly))"
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
    r"(?i)\W*deprecated\b|(?:this|the) (?:method|function|class|api|constructor)s? (?:is|are|has been|was|will be) "
    r"(?:now )?deprecated|(?:is|has been) deprecated"
)
_TODO = re.compile(r"\W*(?:TODO|FIXME|XXX|HACK|BUG|TBD)\b|(?i:to ?do\s*:)")
_STUB = re.compile(
    r"(?i)auto-?generated (?:method|constructor|catch|javadoc)|^insert (?:description|documentation)|"
    r"^(?:description|summary|\[?method description\]?|documentation) ?(?:here|goes here|of \w+ method)?\.?$|"
    r"^missing (?:doc|description)|^add (?:description|documentation)|^no description"
)
_ACCESSOR = re.compile(
    r"(?i)(?:getter|setter|accessor|mutator)s?(?: method)?(?: (?:and|/|&) \w+)?(?: for| of)?(?:\W+[\w$]+){1,3}\W*$"
)
_SEE = re.compile(
    r"(?i)(?:see(?: also)?|refer to|same as|alias(?:es)? (?:of|for|to)|like)(?::| the)? [^\s(]+(?:\([^()]*\))?\W*$"
)
_CODE = re.compile(
    r"(?!.*(?:\b[a-z]+ ){3})"
    r"(?:.*[=(].*[;{]$|\{.*\}$|[\w.$]+ ?:?=(?!=) ?\S|(?:if|for|while) ?\(|[\w.$>:-]+\([^)]*\);?$|"
    r"(?:return|import|var|let|const) [\w.]+;?$)"
)
_TEST = re.compile(r"(?:^|\.)(?:test_|test[A-Z]|it_|(?:Test|Benchmark|Example|Fuzz)(?:[A-Z_]|$))|(?:^|\.)(?:Test[A-Z]\w*|\w+Tests?(?:Case)?)\.")
_TEST_HEAD = re.compile(r"\A(?:\s*@[\w.]+(?:\([^)]*\))?)*?\s*@(?:Test|ParameterizedTest|Before|After|BeforeEach|AfterEach)\b")

# Function words. A text that has more of the foreign ones is not English.
_ENGLISH = frozenset("a an and are as at be by for from if in is it of on or that the this to with".split())
_FOREIGN = frozenset(
    "aus bei das dem den der des die dies ein eine einen für ist mit nicht oder und von wenn werden wird zu zum zur "
    "au aux avec ce cette dans de du elle est et être il la le les ne ou par pas pour que qui si sur un une "
    "al con cuando del el en esta este los las lo no para por se si su sus una uno y "
    "com da do dos em não nas os ou pela pelo são se uma che di della gli il nel per sono "
    "de een en het naar niet van voor wordt zijn och att som är inte till jest nie się dla lub".split()
) - _ENGLISH - {"no", "do", "per", "al", "en", "de", "la", "si", "se", "com", "van", "os", "ne", "con", "par"}


def _inherited(found: Documented) -> bool:
    if found.summary:
        return bool(_IMPLEMENTS.match(found.summary))
    return bool(_INHERITED.search(found.function.raw))


def _foreign(found: Documented) -> bool:
    text = found.description
    if not text.isascii():
        letters = [c for c in text if c.isalpha()]
        if sum(c.isascii() for c in letters) < 0.9 * len(letters):
            return True
    words = re.findall(r"\w+", found.summary.lower())
    return sum(w in _FOREIGN for w in words) > max(1, sum(w in _ENGLISH for w in words))


def _test(found: Documented) -> bool:
    return bool(_TEST.search(found.function.name) or _TEST_HEAD.search(found.function.head))


def _in(pattern: re.Pattern[str]) -> Callable[[Documented], bool]:
    return lambda found: bool(pattern.search(found.summary))


def _at_start(pattern: re.Pattern[str]) -> Callable[[Documented], bool]:
    return lambda found: bool(pattern.match(found.summary))


FILTERS: dict[str, Callable[[Documented], bool]] = {
    "test": _test,
    "about something else": lambda found: bool(_OTHER.search(found.function.text)),
    "inherited": _inherited,
    "no prose": lambda found: not found.summary,
    "licence": _in(_LICENCE),
    "deprecated": _at_start(_DEPRECATED),
    "to do": _at_start(_TODO),
    "template": _in(_STUB),
    "accessor": _at_start(_ACCESSOR),
    "see also": _at_start(_SEE),
    "code": _at_start(_CODE),
    "not English": _foreign,
    "fewer than two words": lambda found: len(re.findall(r"[A-Za-z]+", found.summary)) < 2,
}
