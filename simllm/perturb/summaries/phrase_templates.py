"""Templates: phrases that may be replaced in a text by other phrases with the same meaning.

Each line of the file `phrases.txt` is a group of phrases with the same meaning:

    ^returns the {1}$ | ^gets the {1}$ | ^the {1}$

`{1}` is a slot. `^` stands for the start of the text, and `$` for its end (with or without a full stop).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simllm.io.read_lines import lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.text_cleaning import clean

# A word in a slot: anything but a single punctuation mark that ends a phrase.
_WORD = r"(?![,;:.()](?: |$))\S+"


@dataclass(frozen=True)
class Template:
    """A phrase with slots.

    Attributes:
        pattern: A regular expression that finds the phrase in a text.
        words: The words of the phrase outside its slots. A text that lacks one of them need not be searched.
        others: The phrases that may replace this phrase.
    """

    pattern: re.Pattern[str]
    words: frozenset[str]
    others: list[str]


def load_templates(file: Path, held_out_words: HeldOutWords) -> list[Template]:
    """Load a template for each phrase that can be replaced.

    Two phrases that differ in the words of a held-out pair do not replace each other.
    """
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
                # Such a phrase may match a whole sentence: `^the {1}$` matches "the list is empty", and
                # "returns the list is empty" would be wrong. It may still replace other phrases.
                if others and not phrase.startswith(("^the ", "^a ", "^an ")):
                    templates.append(_template(phrase, others))
    return templates


def _clean_phrase(phrase: str) -> str:
    """Clean a phrase as summaries are cleaned, but keep slots, `^` and `$`."""
    inside = phrase.strip().removeprefix("^").removesuffix("$")
    # `clean` would separate the braces.
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
    """Return a regular expression for one to eight words, given the match of a slot's number."""
    # After "or", "and", "not" or "but", the words belong to another phrase. The quantifier is lazy, so that
    # the words after the slot are found early.
    return rf"(?P<s{number[1]}>(?!(?:or|and|not|but) ){_WORD}(?: {_WORD}){{0,7}}?)"
