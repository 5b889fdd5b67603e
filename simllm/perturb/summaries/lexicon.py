"""The lexicon: word lists for rule-based edits of summaries, read from text files.

Most lines have a part of speech and some words. Examples of lines:

synonyms.txt             verb: compute, calculate
antonyms.txt             verb: open | close, shut     words on the left are opposites of those on the right
one_category_words.txt   noun: row, column, cell      words of one category with different meanings
phrases.txt              ^returns true if {1}$ | ^checks whether {1}$     phrases with the same meaning
abbreviations.txt        config: configuration        a short form and its long form
irregular.txt            verb: send, sends, sent, sent, sending

The module `phrase_templates` explains `^`, `$` and `{1}`.
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
_OPEN = ("verb", "noun", "adjective", "adverb")  # open classes of words


@dataclass(frozen=True)
class Replacement:
    """A word that may replace another word.

    Attributes:
        part_of_speech: The part of speech of both words, such as "verb" or "noun".
        word: The new word.
    """

    part_of_speech: str
    word: str


Replacements = dict[str, list[Replacement]]  # the replacements of each word or phrase


@dataclass(frozen=True)
class Lexicon:
    """Words and phrases with their possible replacements in rule-based edits, and forms of verbs and nouns.

    The first four attributes map each word to the words that may replace it.

    Attributes:
        synonyms: Words with the same meaning, including abbreviations.
        abbreviations: For an abbreviation its long forms, and for a long form its abbreviations.
        opposites: Words with the opposite meaning.
        neighbours: Words of the same category with another meaning, such as "row" and "column".
        templates: Phrases that may replace each other.
        verb_forms: Maps each form of a verb to a tuple of all its forms, such as "take", "takes", "took",
            "taken", "taking".
        nouns: All singular and plural forms of nouns.
        held_out_words: Word pairs that are kept for tests. No edit may replace one word of a pair by the
            other.
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
    """Load the lexicon: words and phrases with their possible replacements, and forms of verbs and nouns.

    Args:
        held_out: Word pairs that are kept for tests. The lexicon never replaces one word of a pair, in any
            form, by the other. In addition, two attributes of the lexicon contain no verbs, nouns,
            adjectives or adverbs of these pairs. These attributes are `opposites`, and `neighbours` (words of
            one category, such as "row" and "column").
        folder: The folder of the word lists.

    Returns:
        The lexicon, without the replacements that `held_out` excludes.
    """
    irregular = load_irregular_forms(folder)
    held_out_words = HeldOutWords(held_out, irregular)

    def table(groups: Iterator[tuple[str, list[tuple[str, str]]]], words: frozenset[str]) -> Replacements:
        """Make a table from each inflected form of a word to the words that may replace this form.

        Held-out pairs (pairs of a word and its replacement that are kept for tests) are left out.

        Args:
            groups: Yields a part of speech, such as "verb", together with its pairs (word, replacement). The
                words are in base form.
            words: Words to avoid, in any form. Pairs of verbs, nouns, adjectives or adverbs that contain one
                of these words are left out, too.
        """
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
    opposites = table(_opposites(folder / "antonyms.txt"), held_out_words.words)
    neighbours = table(_groups(folder / "one_category_words.txt"), held_out_words.words)
    phrases = load_templates(folder / "phrases.txt", held_out_words)
    forms = _forms(folder, irregular)
    return Lexicon(synonyms, abbreviations, opposites, neighbours, phrases, *forms, held_out_words)


def load_irregular_forms(folder: Path = FOLDER) -> Irregular:
    """Load the inflected forms of irregular words.

    Args:
        folder: The folder of the word lists.

    Returns:
        A dict from (part of speech, base form) to a tuple of all forms.
    """
    words = ((kind, tuple(_words(rest))) for kind, rest in _entries(folder / "irregular.txt"))
    return {(kind, forms[0]): forms for kind, forms in words}


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    """Read a word list with lines such as "noun: row, column"; yield the texts before and after the colon."""
    for _, line in lines(file):
        if line.strip() and not line.startswith("#"):
            kind, _, rest = line.partition(":")
            yield kind.strip(), rest.strip()


def _words(text: str) -> list[str]:
    """Split a text at its commas into words, and clean each word with `simllm.text_cleaning.clean`."""
    return [clean(word) for word in text.split(",") if word.strip()]


def _groups(file: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Read a word list with lines such as "verb: compute, calculate".

    In rule-based edits, the words of one line may replace each other.

    Yields:
        The part of speech of a line, and all pairs of two words of that line, in both orders.
    """
    for kind, rest in _entries(file):
        yield kind, list(permutations(_words(rest), 2))


def _opposites(file: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Read the word list of opposites, with lines such as "verb: open | close, shut".

    Yields:
        The part of speech of a line, and all pairs of opposites in that line, in both orders.
    """
    for kind, rest in _entries(file):
        left, _, right = rest.partition("|")
        pairs = [(a, b) for a in _words(left) for b in _words(right)]
        yield kind, pairs + [(b, a) for a, b in pairs]


def _abbreviations(file: Path) -> Iterator[tuple[str, str]]:
    """Read the list of abbreviations; yield each (abbreviation, long form) and (long form, abbreviation)."""
    for short, long in _entries(file):
        a, b = clean(short), clean(long)
        yield from ((a, b), (b, a))


def _forms(folder: Path, irregular: Irregular) -> tuple[dict[str, Forms], frozenset[str]]:
    """Collect the inflected forms of all verbs and nouns in the word lists.

    Args:
        folder: The folder of the word lists.
        irregular: The forms of irregular words.

    Returns:
        A dict from each form of a verb to all its forms, and a set with all forms of nouns.
    """
    files = [folder / f"{name}.txt" for name in ("synonyms", "antonyms", "one_category_words")]
    entries = [(kind, rest.replace("|", ",")) for file in files for kind, rest in _entries(file)]
    verbs: dict[str, Forms] = {}
    nouns: set[str] = set()
    for kind, base in [*irregular, *((kind, base) for kind, rest in entries for base in _words(rest))]:
        if kind == "verb" and " " not in base:
            forms = inflect(kind, base, irregular)
            for form in forms:
                verbs.setdefault(form, forms)
            verbs[base] = forms  # `lay` is a verb itself, and not only a form of `lie`
        elif kind == "noun":
            nouns |= set(inflect(kind, base, irregular))
    return verbs, frozenset(nouns)
