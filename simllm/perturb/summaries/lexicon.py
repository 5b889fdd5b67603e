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

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

from simllm.io.reading import read_lines
from simllm.perturb.summaries.inflection import (
    BEFORE_VERBS,
    CONJUNCTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    PREPOSITIONS,
    Forms,
    Irregular,
    indefinite_article,
    inflect,
    word_family,
)
from simllm.text_cleaning import clean

FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Replacement:
    """A word that may replace another word with the same part of speech, such as "verb" or "noun"."""

    part_of_speech: str
    word: str


Replacements = dict[str, list[Replacement]]  # the replacements of each word or phrase
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


# No text can do without these words, so pairs with one of them are ignored.
_CLOSED = DETERMINERS | PREPOSITIONS | CONJUNCTIONS


class HeldOutWords:
    """Held-out word pairs; each word may be given in any form, such as "open" or "opened".

    Attributes:
        pairs: Frozensets of two words, in all forms: ("open", "close") also gives {"opened", "closes"}.
        words: All words of these pairs, in all forms.
    """

    def __init__(self, pairs: Collection[tuple[str, str]], irregular: Irregular) -> None:
        self.pairs = {
            frozenset(forms)
            for a, b in (map(clean, pair) for pair in pairs)
            if not _CLOSED & {a, b}
            for forms in product(word_family(a, irregular), word_family(b, irregular))
        }
        self.words = frozenset(word for pair in self.pairs for word in pair)

    def holds_out(self, a: str, b: str) -> bool:
        """Return whether two phrases are a held-out pair, or differ in the words of one.

        "open file" and "close file" differ in the words of ("open", "close").
        """
        if frozenset((a, b)) in self.pairs:
            return True
        left, right = set(a.split()), set(b.split())
        return any(frozenset(pair) in self.pairs for pair in product(left - right, right - left))


# Open classes of words; prepositions and other closed classes cannot be left out.
_OPEN = ("verb", "noun", "adjective", "adverb")


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
    for _, line in read_lines(file):
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


def load_templates(file: Path, held_out_words: HeldOutWords) -> list[Template]:
    """Load a template for each phrase that can be replaced.

    Two phrases that differ in the words of a held-out pair do not replace each other.
    """
    templates = []
    for _, line in read_lines(file):
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


_LONGEST = 3  # words of the longest phrase that is replaced


def replaceable(
    words: list[str], table: Replacements, lexicon: Lexicon
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the start, end and fitting replacements of each word or short phrase in a table."""
    for start in range(len(words)):
        # The longest phrase comes first: "set up" is not replaced as "set".
        for end in range(min(start + _LONGEST, len(words)), start, -1):
            options = table.get(" ".join(words[start:end]))
            if options:
                fitting = [option.word for option in options if _fits(words, start, end, option, lexicon)]
                if fitting:
                    yield start, end, fitting
                    break


def _fits(words: list[str], start: int, end: int, option: Replacement, lexicon: Lexicon) -> bool:
    """Return whether a new word has the part of speech of the phrase that it may replace.

    The part of speech of the phrase is guessed from its form and the words around: in "the display",
    "display" is probably a noun.
    """
    word, before = words[start], words[start - 1] if start else ""
    after = words[end] if end < len(words) else ""
    is_noun, is_verb = word in lexicon.nouns, word in lexicon.verb_forms
    may_be_verb = not start or before in BEFORE_VERBS
    if option.part_of_speech == "verb":
        # A function word such as "does" is no full verb. At the end, as in "exception handling", a phrase of
        # several words would not fit.
        if word in FUNCTION_WORDS or (" " in option.word and not after):
            return False
        if may_be_verb or (word.endswith(("ed", "ing")) and not is_noun):
            return True
        return word.endswith("s") and not is_noun and before not in FUNCTION_WORDS
    if option.part_of_speech == "noun" and is_verb:
        if before in (PREPOSITIONS | DETERMINERS) - {"to", "that"}:
            return True
        return before in ("and", "or") or not (may_be_verb or after in DETERMINERS | {"to"})
    if option.part_of_speech == "adjective":
        return not (is_verb and may_be_verb)
    # "to" before an infinitive is not a preposition.
    if option.part_of_speech == "preposition":
        return bool(after) and before not in PREPOSITIONS and not lexicon.is_base(after)
    return True


def replace(words: list[str], start: int, end: int, new: str) -> list[str]:
    """Replace some words, and correct an indefinite article before them: "a list" becomes "an array"."""
    before = words[:start]
    if before and before[-1] in ("a", "an"):
        before = [*before[:-1], indefinite_article(new)]
    return [*before, *new.split(), *words[end:]]


def replace_each(text: str, table: Replacements, lexicon: Lexicon) -> Iterator[str]:
    """Yield one text for each possible replacement of a word or phrase."""
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)
