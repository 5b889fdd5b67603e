"""The lexicon: word lists for rule-based edits of summaries, read from text files.

Most lines have a part of speech and some words. Examples of lines:

synonyms.txt             verb: compute, calculate
antonyms.txt             verb: open | close, shut     words on the left are opposites of those on the right
one_category_words.txt   noun: row, column, cell      words of one category with different meanings
phrases.txt              ^returns true if {1}$ | ^checks whether {1}$     phrases with the same meaning
abbreviations.txt        config: configuration        a short form and its long form
irregular.txt            verb: send, sends, sent, sent, sending
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from simllm.io.read_lines import lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.perturb.summaries.inflection import Forms, Irregular, inflect
from simllm.perturb.summaries.phrase_templates import Template, load_templates
from simllm.text_cleaning import clean

FOLDER = Path(__file__).parent / "data"
# Open classes of words; prepositions and other closed classes cannot be left out.
_OPEN = ("verb", "noun", "adjective", "adverb")


@dataclass(frozen=True)
class Replacement:
    """A word that may replace another word with the same part of speech, such as "verb" or "noun"."""

    part_of_speech: str
    word: str


Replacements = dict[str, list[Replacement]]  # the replacements of each word or phrase


@dataclass(frozen=True)
class Lexicon:
    """Words and phrases with their possible replacements, and forms of verbs and nouns.

    Attributes:
        synonyms: Words with the same meaning, including abbreviations.
        abbreviations: Long forms of abbreviations, and abbreviations of long forms.
        opposites: Words with the opposite meaning.
        neighbours: Words of the same category with another meaning.
        verb_forms: All forms of a verb, by each of its forms; the base form comes first.
        nouns: All singular and plural forms of nouns.
    """

    synonyms: Replacements
    abbreviations: Replacements
    opposites: Replacements
    neighbours: Replacements
    templates: list[Template]
    verb_forms: dict[str, Forms]
    nouns: frozenset[str]
    held_out_words: HeldOutWords

    def is_base(self, word: str) -> bool:
        """Return whether a word is the base form of a verb, such as "take"."""
        return self.verb_forms.get(word, ("",))[0] == word


def load(held_out: Collection[tuple[str, str]] = (), folder: Path = FOLDER) -> Lexicon:
    """Load the lexicon without held-out pairs.

    Verbs, nouns, adjectives and adverbs of these pairs are left out of `opposites` and `neighbours`
    altogether.
    """
    irregular = load_irregular_forms(folder)
    held_out_words = HeldOutWords(held_out, irregular)

    def table(groups: Iterator[tuple[str, list[tuple[str, str]]]], words: frozenset[str]) -> Replacements:
        """Map each form to its replacements; pairs of open classes with a word of `words` are left out."""
        replacements: Replacements = defaultdict(list)
        for kind, bases in groups:
            for a, b in bases:
                old, new = (inflect(kind, base, irregular) for base in (a, b))
                if held_out_words.holds_out(a, b) or (
                    kind in _OPEN and words.intersection(" ".join(old + new).split())
                ):
                    continue
                # If several forms are equal, the last one counts: `displayed` is a participle more often
                # than a past form. But the base form counts before all others, as in `set`.
                forms = dict(zip(old, new, strict=True)) | {old[0]: new[0]}
                for form, other in forms.items():
                    if (replacement := Replacement(kind, other)) not in replacements[form] and form != other:
                        replacements[form].append(replacement)
        return dict(replacements)

    synonyms = table(_groups(folder / "synonyms.txt"), frozenset())
    abbreviations: Replacements = {}
    for old, new in _abbreviations(folder / "abbreviations.txt"):
        if not held_out_words.holds_out(old, new):
            for replacements in (synonyms, abbreviations):
                replacements.setdefault(old, []).append(Replacement("noun", new))
    # Changes of meaning leave out held-out words altogether, so that training shows no other opposite or
    # neighbour of these words either.
    opposites = table(_opposites(folder / "antonyms.txt"), held_out_words.words)
    neighbours = table(_groups(folder / "one_category_words.txt"), held_out_words.words)
    phrases = load_templates(folder / "phrases.txt", held_out_words)
    forms = _forms(folder, irregular)
    return Lexicon(synonyms, abbreviations, opposites, neighbours, phrases, *forms, held_out_words)


def load_irregular_forms(folder: Path = FOLDER) -> Irregular:
    """Load the forms of irregular words, by part of speech and base form."""
    words = ((kind, tuple(_words(rest))) for kind, rest in _entries(folder / "irregular.txt"))
    return {(kind, forms[0]): forms for kind, forms in words}


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts before and after the colon of each line, such as "noun: row, column"."""
    for _, line in lines(file):
        if line.strip() and not line.startswith("#"):
            kind, _, rest = line.partition(":")
            yield kind.strip(), rest.strip()


def _words(text: str) -> list[str]:
    """Split a text at its commas, and clean each word."""
    return [clean(word) for word in text.split(",") if word.strip()]


def _groups(file: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the part of speech of each line, and all pairs of its words in both orders."""
    for kind, rest in _entries(file):
        yield kind, list(permutations(_words(rest), 2))


def _opposites(file: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the part of speech of each line, and all its pairs of opposites in both orders."""
    for kind, rest in _entries(file):
        left, _, right = rest.partition("|")
        pairs = [(a, b) for a in _words(left) for b in _words(right)]
        yield kind, pairs + [(b, a) for a, b in pairs]


def _abbreviations(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each (abbreviation, long form) and (long form, abbreviation)."""
    for short, long in _entries(file):
        a, b = clean(short), clean(long)
        yield from ((a, b), (b, a))


def _forms(folder: Path, irregular: Irregular) -> tuple[dict[str, Forms], frozenset[str]]:
    """Return the forms of each verb, by each form, and all forms of nouns, from all word lists."""
    files = [folder / f"{name}.txt" for name in ("synonyms", "antonyms", "one_category_words")]
    entries = [(kind, rest.replace("|", ",")) for file in files for kind, rest in _entries(file)]
    verbs: dict[str, Forms] = {}
    nouns: set[str] = set()
    for kind, base in [*irregular, *((kind, base) for kind, rest in entries for base in _words(rest))]:
        if kind == "verb" and " " not in base:
            forms = inflect(kind, base, irregular)
            for form in forms:
                # The first verb of the lists counts for a form that several verbs share.
                verbs.setdefault(form, forms)
            verbs[base] = forms  # `lay` is a verb itself, and not only a form of `lie`
        elif kind == "noun":
            nouns |= set(inflect(kind, base, irregular))
    return verbs, frozenset(nouns)
