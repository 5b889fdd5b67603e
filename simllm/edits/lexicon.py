"""What the rules know of words: which mean the same in a summary, and which do not.

synonyms.txt       verb: compute, calculate
antonyms.txt       verb: open | close, shut          any of the left against any of the right
neighbours.txt     noun: row, column, cell           of one category, each something else
phrases.txt        ^returns true if {1}$ | ^checks whether {1}$
abbreviations.txt  config: configuration
irregular.txt      verb: send, sends, sent, sent, sending
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from simllm.edits.inflection import Forms, inflected
from simllm.files import lines
from simllm.text import clean

FOLDER = Path(__file__).parent / "data"
_OPEN = ("verb", "noun", "adjective", "adverb")  # kinds of words of which there are too many to list


@dataclass(frozen=True)
class Replacement:
    """A word that may stand where another does, and the kind of word that it is then."""

    kind: str
    word: str


Replacements = dict[str, list[Replacement]]  # by the word or the words that they replace


@dataclass(frozen=True)
class Template:
    """A phrase with slots, as a pattern to be found, and the phrases that it may become."""

    pattern: re.Pattern[str]
    words: frozenset[str]  # that a text must have for the pattern to be there
    others: list[str]


@dataclass(frozen=True)
class Lexicon:
    """Everything in `data`, but for what is held out."""

    synonyms: Replacements
    opposites: Replacements
    neighbours: Replacements
    templates: list[Template]
    verb_forms: dict[str, Forms]  # by each of them
    nouns: frozenset[str]  # forms


def load(held_out: Collection[tuple[str, str]] = (), folder: Path = FOLDER) -> Lexicon:
    """Read the lexicon, without the pairs of words that are held out to test with.

    A held-out pair of verbs, nouns, adjectives or adverbs (in any form) is not among the synonyms,
    and neither of the two among opposites or neighbours, whatever it is paired with there.
    """
    irregular = _irregular(folder / "irregular.txt")

    def table(groups: Iterator[tuple[str, list[tuple[str, str]]]], whole: bool) -> Replacements:
        pairs = {frozenset(pair) for pair in held_out}
        words = {word for pair in held_out for word in pair} if whole else set()
        found: Replacements = defaultdict(list)
        for kind, bases in groups:
            for a, b in bases:
                forms = tuple(inflected(kind, base, irregular) for base in (a, b))
                if kind in _OPEN and _is_held_out(forms, pairs, words):
                    continue
                for old, new in dict.fromkeys(zip(*forms, strict=True)):
                    found[old].append(Replacement(kind, new))
        return dict(found)

    synonyms = table(_groups(folder / "synonyms.txt"), whole=False)
    for old, new in _abbreviations(folder / "abbreviations.txt"):
        synonyms.setdefault(old, []).append(Replacement("noun", new))
    opposites = table(_sides(folder / "antonyms.txt"), whole=True)
    neighbours = table(_groups(folder / "neighbours.txt"), whole=True)
    verbs, nouns = _forms(folder, irregular)
    return Lexicon(synonyms, opposites, neighbours, _templates(folder / "phrases.txt"), verbs, nouns)


def _is_held_out(forms: Sequence[Forms], pairs: set[frozenset[str]], words: set[str]) -> bool:
    if any(form in words for word in forms for form in word):
        return True
    return any(frozenset((a, b)) in pairs for a in forms[0] for b in forms[1])


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    """The kind and the rest of each `kind: rest` line."""
    for _, line in lines(file):
        if line.strip() and not line.startswith("#"):
            kind, _, rest = line.partition(":")
            yield kind.strip(), rest.strip()


def _words(text: str) -> list[str]:
    return [clean(word) for word in text.split(",") if word.strip()]


def _groups(file: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for kind, rest in _entries(file):
        yield kind, list(permutations(_words(rest), 2))


def _sides(file: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for kind, rest in _entries(file):
        left, _, right = rest.partition("|")
        pairs = [(a, b) for a in _words(left) for b in _words(right)]
        yield kind, pairs + [(b, a) for a, b in pairs]


def _abbreviations(file: Path) -> Iterator[tuple[str, str]]:
    for short, long in _entries(file):
        a, b = clean(short), clean(long)
        yield from ((a, b), (b, a))


def _irregular(file: Path) -> dict[tuple[str, str], Forms]:
    words = ((kind, tuple(_words(rest))) for kind, rest in _entries(file))
    return {(kind, forms[0]): forms for kind, forms in words}


def _forms(folder: Path, irregular: dict[tuple[str, str], Forms]) -> tuple[dict[str, Forms], frozenset[str]]:
    """All forms of all verbs, held out or not: how a word stands in a sentence is no secret."""
    verbs: dict[str, Forms] = {}
    nouns: set[str] = set()
    files = [folder / f"{name}.txt" for name in ("synonyms", "antonyms", "neighbours", "irregular")]
    for kind, rest in (entry for file in files for entry in _entries(file)):
        for base in _words(rest.replace("|", ",")):
            if kind == "verb" and " " not in base:
                forms = inflected(kind, base, irregular)
                verbs = dict.fromkeys(forms, forms) | verbs  # what came first stays
            elif kind == "noun":
                nouns |= set(inflected(kind, base, irregular))
    return verbs, frozenset(nouns)


def _templates(file: Path) -> list[Template]:
    found = []
    for _, line in lines(file):
        phrases = [_cleaned(phrase) for phrase in line.split(" | ")]
        if line.strip() and not line.startswith("#"):
            found += [
                _template(phrase, [other for other in phrases if other != phrase])
                for phrase in phrases
                if not phrase.startswith(("^the ", "^a ", "^an "))  # what is returned; else a sentence
            ]
    return sorted(found, key=lambda template: -len(template.words))


def _cleaned(phrase: str) -> str:
    """A template as it reads in cleaned texts; `^` and `$` are kept at its ends."""
    inside = phrase.strip().removeprefix("^").removesuffix("$")
    text = clean(re.sub(r"\{(\d)\}", r"slot\1slot", inside))
    start, end = phrase.strip().startswith("^"), phrase.strip().endswith("$")
    return "^" * start + re.sub(r"slot(\d)slot", r"{\1}", text) + "$" * end


def _template(phrase: str, others: list[str]) -> Template:
    inside = phrase.removeprefix("^").removesuffix("$")
    pattern = re.sub(r"\\\{(\d)\\\}", r"(?P<s\1>\\S+(?: \\S+){0,7}?)", re.escape(inside))
    pattern = ("^" if phrase.startswith("^") else r"(?<!\S)") + pattern
    pattern += r"(?=(?: \.)?$)" if phrase.endswith("$") else r"(?!\S)"
    words = frozenset(word for word in inside.split() if "{" not in word)
    return Template(re.compile(pattern), words, [o.removeprefix("^").removesuffix("$") for o in others])
