"""Templates: phrases that may be replaced in a text by other phrases with the same meaning.

Each line of the file `phrases.txt` is a group of phrases with the same meaning:

    ^returns the {1}$ | ^gets the {1}$ | ^the {1}$

`{1}` is a slot, which stands for one to eight words. `^` stands for the start of the text, and `$` for its
end (with or without a full stop). Phrases that begin with `^the`, `^a` or `^an` may replace other phrases,
but are never replaced themselves, because they may match whole sentences. For example, `^the {1}$` matches
"the list is empty", and "returns the list is empty" would be wrong.
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
    """A phrase with slots, and the phrases that may replace it.

    A slot, such as `{1}` in "returns the {1}", stands for one to eight words.

    Attributes:
        pattern: A regular expression that finds the phrase in a text.
        words: The words of the phrase outside its slots. A text that lacks one of them need not be searched.
        others: The phrases that may replace this phrase.
    """

    pattern: re.Pattern[str]
    words: frozenset[str]
    others: list[str]


def load_templates(file: Path, held_out_words: HeldOutWords) -> list[Template]:
    """Load phrases, and for each phrase the other phrases that may replace it.

    Args:
        file: A text file. Each line has phrases with the same meaning, separated by ` | `. In a phrase, `{1}`
            stands for any words, as in `get {1} | fetch {1}`.
        held_out_words: Pairs of words that are kept for tests. Two phrases do not replace each other if one
            has the first word of such a pair, and the other has the second word instead. For example, if
            ("get", "fetch") is such a pair, "get {1}" and "fetch {1}" do not replace each other.

    Returns:
        A template for each phrase that can be replaced: a regular expression that finds the phrase, and the
        phrases that may replace it.
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
                if others and not phrase.startswith(("^the ", "^a ", "^an ")):
                    templates.append(_template(phrase, others))
    return templates


def _clean_phrase(phrase: str) -> str:
    """Clean a phrase by the rules for summaries: lower case, no comment marks, and so on.

    For example, `^Returns the {1}$` becomes `^returns the {1}$`. The slot `{1}`, which stands for other
    words, stays unchanged. So do the signs `^` and `$`, which stand for the start and the end of a text.
    """
    inside = phrase.strip().removeprefix("^").removesuffix("$")
    text = clean(re.sub(r"\{(\d)\}", r"slot\1slot", inside))
    start, end = phrase.strip().startswith("^"), phrase.strip().endswith("$")
    return "^" * start + re.sub(r"slot(\d)slot", r"{\1}", text) + "$" * end


def _template(phrase: str, others: list[str]) -> Template:
    """Make a template: a regular expression that finds a phrase, and the phrases that may replace it.

    Args:
        phrase: A phrase with slots, such as "^returns the {1}$". The slot `{1}` stands for one to eight
            words; `^` and `$` stand for the start and the end of the text.
        others: The phrases that may replace this phrase.
    """
    inside = phrase.removeprefix("^").removesuffix("$")
    pattern = re.sub(r"\\\{(\d)\\\}", _slot, re.escape(inside))
    pattern = ("^" if phrase.startswith("^") else r"(?<!\S)") + pattern
    pattern += r"(?P<end>(?: \.)?)$" if phrase.endswith("$") else r"(?P<end>)(?!\S)"
    words = frozenset(word for word in inside.split() if "{" not in word)
    return Template(re.compile(pattern), words, [o.removeprefix("^").removesuffix("$") for o in others])


def _slot(number: re.Match[str]) -> str:
    """Return a regular expression for a slot of a phrase: it matches one to eight words.

    For example, `{1}` is the slot of the phrase "returns the {1}". The first of the words must not be "or",
    "and", "not" or "but".

    Args:
        number: The match that found the slot in the phrase; its group 1 is the slot's number.
    """
    return rf"(?P<s{number[1]}>(?!(?:or|and|not|but) ){_WORD}(?: {_WORD}){{0,7}}?)"
