"""The lexicon: which words mean the same in a summary, which do not, and their forms.

synonyms.txt       verb: compute, calculate
antonyms.txt       verb: open | close, shut          any of the left against any of the right
neighbours.txt     noun: row, column, cell           of one category, each something else
phrases.txt        ^returns true if {1}$ | ^checks whether {1}$     see `templates`
abbreviations.txt  config: configuration
irregular.txt      verb: send, sends, sent, sent, sending
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from simllm.io.files import lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.perturb.summaries.inflection import Forms, Irregular, inflected
from simllm.perturb.summaries.templates import Template, templates
from simllm.text import clean

FOLDER = Path(__file__).parent / "data"
_OPEN = ("verb", "noun", "adjective", "adverb")  # kinds of words of which there are too many to list


@dataclass(frozen=True)
class Replacement:
    """A word that may replace another, and its part of speech."""

    kind: str
    word: str


Replacements = dict[str, list[Replacement]]  # by the word or the words that they replace


@dataclass(frozen=True)
class Lexicon:
    """Everything in `data`, without the held-out pairs."""

    synonyms: Replacements  # abbreviations among them
    abbreviations: Replacements  # a word for its abbreviation, and the other way round
    opposites: Replacements
    neighbours: Replacements
    templates: list[Template]
    verb_forms: dict[str, Forms]  # by each of them
    nouns: frozenset[str]  # forms

    def is_base(self, word: str) -> bool:
        """Whether this is a verb as it stands after `to`."""
        return self.verb_forms.get(word, ("",))[0] == word


def load(held_out: Collection[tuple[str, str]] = (), folder: Path = FOLDER) -> Lexicon:
    """Read the lexicon, without the pairs of words that are held out for tests.

    No two synonyms, and no two phrases, differ by a held-out pair in any form. The verbs, nouns,
    adjectives and adverbs of these pairs are not among opposites and neighbours at all.
    """
    irregular = irregular_forms(folder)
    held = HeldOutWords(held_out, irregular)

    def table(groups: Iterator[tuple[str, list[tuple[str, str]]]], words: frozenset[str]) -> Replacements:
        found: Replacements = defaultdict(list)
        for kind, bases in groups:
            for a, b in bases:
                old, new = (inflected(kind, base, irregular) for base in (a, b))
                if held.holds_out(a, b) or (
                    kind in _OPEN and words.intersection(" ".join(old + new).split())
                ):
                    continue
                forms = dict(zip(old, new, strict=True))  # `displayed` is a participle more often than a past
                forms[old[0]] = new[0]  # and `set` the base
                for form, other in forms.items():
                    if (replacement := Replacement(kind, other)) not in found[form] and form != other:
                        found[form].append(replacement)
        return dict(found)

    synonyms = table(_groups(folder / "synonyms.txt"), frozenset())
    abbreviations: Replacements = {}
    for old, new in _abbreviations(folder / "abbreviations.txt"):
        if not held.holds_out(old, new):
            for known in (synonyms, abbreviations):
                known.setdefault(old, []).append(Replacement("noun", new))
    opposites = table(_sides(folder / "antonyms.txt"), held.words)
    neighbours = table(_groups(folder / "neighbours.txt"), held.words)
    phrases = templates(folder / "phrases.txt", held)
    return Lexicon(synonyms, abbreviations, opposites, neighbours, phrases, *_forms(folder, irregular))


def irregular_forms(folder: Path = FOLDER) -> Irregular:
    """Return the forms of irregular verbs and nouns, by kind and base."""
    words = ((kind, tuple(_words(rest))) for kind, rest in _entries(folder / "irregular.txt"))
    return {(kind, forms[0]): forms for kind, forms in words}


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


def _forms(folder: Path, irregular: Irregular) -> tuple[dict[str, Forms], frozenset[str]]:
    """All forms of all verbs by each form, and all forms of nouns; held-out words are among them."""
    files = [folder / f"{name}.txt" for name in ("synonyms", "antonyms", "neighbours")]
    entries = [(kind, rest.replace("|", ",")) for file in files for kind, rest in _entries(file)]
    verbs: dict[str, Forms] = {}
    nouns: set[str] = set()
    for kind, base in [*irregular, *((kind, base) for kind, rest in entries for base in _words(rest))]:
        if kind == "verb" and " " not in base:
            forms = inflected(kind, base, irregular)
            for form in forms:
                verbs.setdefault(form, forms)
            verbs[base] = forms  # `lay` is a verb of its own, not only a form of `lie`
        elif kind == "noun":
            nouns |= set(inflected(kind, base, irregular))
    return verbs, frozenset(nouns)
