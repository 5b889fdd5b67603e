"""Templates: phrases with slots that have the same meaning.

    ^returns the {1}$ | ^gets the {1}$ | ^the {1}$

{1} stands for one to eight words, `^` for the start of the text, and `$` for its end (with or without a
full stop). Each phrase of a line may be replaced by each other phrase. Phrases with `^the`, `^a` or
`^an` replace others, but are not replaced, because a text with an article may be a whole sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simllm.io.files import lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.text_cleaning import clean

# Words in a slot: they contain no punctuation mark that ends a phrase.
_WORD = r"(?![,;:.()](?: |$))\S+"


@dataclass(frozen=True)
class Template:
    """A phrase with slots, and the phrases that may replace it.

    Attributes:
        pattern: A pattern for the phrase.
        words: The words of the phrase; texts without all of them cannot match.
        others: The phrases that may replace it.
    """

    pattern: re.Pattern[str]
    words: frozenset[str]
    others: list[str]


def load_templates(file: Path, held_out_words: HeldOutWords) -> list[Template]:
    """Load the phrases; phrases that differ by a held-out pair do not replace each other."""
    templates = []
    for _, line in lines(file):
        if line.strip() and not line.startswith("#"):
            phrases = [_clean_phrase(phrase) for phrase in line.split(" | ")]
            for phrase in phrases:
                others = [
                    p
                    for p in phrases
                    if p != phrase and not held_out_words.holds_out(phrase.strip("^$"), p.strip("^$"))
                ]
                if others and not phrase.startswith(("^the ", "^a ", "^an ")):
                    templates.append(_template(phrase, others))
    return templates


def _clean_phrase(phrase: str) -> str:
    """Clean a phrase like a text, but keep its slots and `^` and `$` at its ends."""
    inside = phrase.strip().removeprefix("^").removesuffix("$")
    text = clean(re.sub(r"\{(\d)\}", r"slot\1slot", inside))
    start, end = phrase.strip().startswith("^"), phrase.strip().endswith("$")
    return "^" * start + re.sub(r"slot(\d)slot", r"{\1}", text) + "$" * end


def _template(phrase: str, others: list[str]) -> Template:
    """Compile a phrase to a template."""
    inside = phrase.removeprefix("^").removesuffix("$")
    pattern = re.sub(r"\\\{(\d)\\\}", _slot, re.escape(inside))
    pattern = ("^" if phrase.startswith("^") else r"(?<!\S)") + pattern
    pattern += r"(?P<end>(?: \.)?)$" if phrase.endswith("$") else r"(?P<end>)(?!\S)"
    words = frozenset(word for word in inside.split() if "{" not in word)
    return Template(re.compile(pattern), words, [o.removeprefix("^").removesuffix("$") for o in others])


def _slot(number: re.Match[str]) -> str:
    """Return the pattern of a slot: one to eight words, which do not begin with a conjunction."""
    return rf"(?P<s{number[1]}>(?!(?:or|and|not|but) ){_WORD}(?: {_WORD}){{0,7}}?)"
