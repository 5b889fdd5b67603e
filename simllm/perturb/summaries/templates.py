"""Phrases with slots that mean the same.

    ^returns the {1}$ | ^gets the {1}$ | ^the {1}$

{1} stands for one to eight words, `^` for the start of the text and `$` for its end, or the full stop
there. Any phrase of a line may be replaced by any other. But phrases with `^the`, `^a` or `^an` only
replace others: a text that begins with an article may be a whole sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simllm.io.files import lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.text import clean

# A slot ends at a mark, and begins with no word that belongs to what is before it.
_WORD = r"(?![,;:.()](?: |$))\S+"


@dataclass(frozen=True)
class Template:
    """A phrase with slots, as a pattern, and the phrases that may replace it."""

    pattern: re.Pattern[str]
    words: frozenset[str]  # that a text must have for the pattern to be there
    others: list[str]


def templates(file: Path, held: HeldOutWords) -> list[Template]:
    """Read the phrases; those that differ by a held-out pair of words do not replace each other."""
    found = []
    for _, line in lines(file):
        if line.strip() and not line.startswith("#"):
            phrases = [_cleaned(phrase) for phrase in line.split(" | ")]
            for phrase in phrases:
                others = [
                    p
                    for p in phrases
                    if p != phrase and not held.holds_out(phrase.strip("^$"), p.strip("^$"))
                ]
                if others and not phrase.startswith(("^the ", "^a ", "^an ")):
                    found.append(_template(phrase, others))
    return found


def _cleaned(phrase: str) -> str:
    """A phrase as it reads in cleaned texts; `^` and `$` are kept at its ends."""
    inside = phrase.strip().removeprefix("^").removesuffix("$")
    text = clean(re.sub(r"\{(\d)\}", r"slot\1slot", inside))
    start, end = phrase.strip().startswith("^"), phrase.strip().endswith("$")
    return "^" * start + re.sub(r"slot(\d)slot", r"{\1}", text) + "$" * end


def _template(phrase: str, others: list[str]) -> Template:
    inside = phrase.removeprefix("^").removesuffix("$")
    pattern = re.sub(r"\\\{(\d)\\\}", _slot, re.escape(inside))
    pattern = ("^" if phrase.startswith("^") else r"(?<!\S)") + pattern
    pattern += r"(?P<end>(?: \.)?)$" if phrase.endswith("$") else r"(?P<end>)(?!\S)"
    words = frozenset(word for word in inside.split() if "{" not in word)
    return Template(re.compile(pattern), words, [o.removeprefix("^").removesuffix("$") for o in others])


def _slot(number: re.Match[str]) -> str:
    return rf"(?P<s{number[1]}>(?!(?:or|and|not|but) ){_WORD}(?: {_WORD}){{0,7}}?)"
