"""New names for symbols: synonyms of their words, near words by embeddings, or plain numbers."""

from __future__ import annotations

import itertools
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io.reading import read_lines
from simllm.perturb.code.rules import LANGUAGES, find_rules
from simllm.perturb.code.units import Symbol
from simllm.perturb.code.values import common_names, fits, is_open
from simllm.perturb.summaries import lexicon

# Takes a name, the kind of its symbol and the kind of its values; returns proposals, best first.
Namer = Callable[[str, str, str], Iterable[str]]
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"
_WORDS = re.compile(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|\d+|[^\W\d_{_UPPER}{_LOWER}]+")
_FILE = Path(__file__).parent / "data" / "identifier_synonyms.txt"
_SHOWN = 3  # refused proposals that a reason names
_LETTERS = {"function": "f", "parameter": "p", "variable": "v"}
_MOST = 5  # replacements for each word
_SHORT = 2  # letters of a name that is no word, such as `s` or `xs`
_POOL = 24  # proposals among which a seed chooses


def split_words(name: str) -> list[str]:
    """Split an identifier at case, digits and underscores: `maxWidth2` gives `max`, `Width` and `2`."""
    return _WORDS.findall(name)


def _joined(name: str, new: Mapping[int, str]) -> str:
    """Replace words of a name: `maxWidth` with `{0: "maximum"}` becomes `maximumWidth`.

    The keys are indices in `split_words(name)`, and the new words are in lower case. Upper case and
    underscores stay as in the old name.
    """
    numbers = itertools.count()

    def replaced(match: re.Match[str]) -> str:
        word = new.get(next(numbers), "")
        if not word:
            return match[0]
        if match[0].isupper() and len(match[0]) > 1:
            return word.upper()
        return word.capitalize() if match[0][0].isupper() else word

    return _WORDS.sub(replaced, name)


def _replaced_words(name: str, choices: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield new names with replaced words; `choices` has the replacements of each word, best first.

    The best replacements come first: one word at a time, and then all words at once. `maxWidth` gives
    `maximumWidth`, `maxBreadth` and `maximumBreadth`. The second-best replacements follow in the same way.
    """
    for number in range(max(map(len, choices), default=0)):
        new = {at: options[number] for at, options in enumerate(choices) if number < len(options)}
        for at, word in new.items():
            yield _joined(name, {at: word})
        if len(new) > 1:
            yield _joined(name, new)


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    """Return the synonyms of each word, best first."""
    table: dict[str, dict[str, None]] = {}
    for _, line in read_lines(_FILE):
        word, _, others = line.partition(":")
        if others and not line.startswith("#"):
            # This list was made for names in code, so its synonyms come before those of the lexicon, which
            # was made for summaries.
            table.setdefault(word.strip(), {}).update(dict.fromkeys(map(str.strip, others.split(","))))
    for word, replacements in lexicon.load().synonyms.items():
        usable = (r.word for r in replacements if r.part_of_speech in ("noun", "verb", "adjective"))
        table.setdefault(word, {}).update(dict.fromkeys(w for w in usable if w.isalpha()))
    return {word: tuple(others) for word, others in table.items()}


def _known_words() -> list[str]:
    """Return all words in the lists of synonyms, in alphabetical order."""
    table = _synonyms()
    return sorted({*table, *(word for words in table.values() for word in words)})


def plain(name: str, kind: str, values: str = "") -> Iterator[str]:
    """Propose an endless sequence of meaningless names: `v0`, `v1` … for variables, `p0` …, or `f0` …."""
    return (f"{_LETTERS[kind]}{number}" for number in itertools.count())


def synonyms(name: str, kind: str, values: str = "") -> Iterator[str]:
    """Propose names with synonyms: `maximumWidth` for `maxWidth`, or `fetch_all` for `read_all`.

    The last word of a parameter or variable fits the kind of its values.
    """
    table = _synonyms()
    return _fitting_names(name, kind, values, lambda word: table.get(word, ()))


def _fitting_names(
    name: str, kind: str, values: str, others_of: Callable[[str], Sequence[str]]
) -> Iterator[str]:
    """Yield names with replaced words whose last word fits; `others_of` returns replacements of a word."""
    words = [word.lower() for word in split_words(name)]
    choices = [list(others_of(word)) for word in words]
    # Digits at the end, as in `s1`, are no word that tells a kind.
    last = next((at for at in reversed(range(len(words))) if not words[at].isdigit()), None)
    if kind != "function" and last is not None:
        choices[last] = [other for other in choices[last] if fits(other, words[last], values)]
        if len(words[last]) <= _SHORT and len(words) == last + 1 == 1:
            # A letter can stand for anything.
            choices[last] += [word for word in common_names(values) if word not in choices[last]]
            if not values:
                choices[last].sort(key=is_open, reverse=True)
    return _replaced_words(name, choices)


def seeded(namer: Namer, seed: int) -> Namer:
    """Make a namer that proposes the first names of another one in a random order, which a seed decides."""

    def propose(name: str, kind: str, values: str) -> Iterator[str]:
        proposals = list(itertools.islice(namer(name, kind, values), _POOL))
        # The name is part of the seed, so that two names with the same proposals get different orders.
        random.Random(f"{seed} {name}").shuffle(proposals)
        return iter(proposals)

    return propose


def nearest_names(embed: Callable[[Sequence[str]], np.ndarray]) -> Namer:
    """Make a namer that replaces one word, or all words, of a name by words with similar embeddings.

    The replacements come from simllm's lists of synonyms. `embed` returns the (n, D) embeddings of n words,
    as `SimLLM.embed` does.
    """
    words = _known_words()
    embeddings = _normalized(embed(words))

    def nearest(word: str) -> list[str]:
        """Return up to 5 known words with the largest cosine, without other forms of the word itself."""
        order = np.argsort(-(embeddings @ _normalized(embed([word]))[0]), kind="stable")
        # Many of the nearest words are forms of the word, so more candidates are taken than are returned.
        others = (words[int(number)] for number in order[: 4 * _MOST])
        return [other for other in others if not _is_form(other, word)][:_MOST]

    return lambda name, kind, values: _fitting_names(name, kind, values, nearest)


def _normalized(embeddings: np.ndarray) -> np.ndarray:
    """Scale (n, D) embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)


def _is_form(other: str, word: str) -> bool:
    """Guess from the first letters whether two words are forms of one word, such as "item" and "items"."""
    # No stemmer: a wrongly rejected word costs only one proposal of several.
    short, long = sorted((other, word), key=len)
    return long.startswith(short[: max(4, len(short) - 1)])


def namer_of(names: str | Mapping[str, str] | Namer) -> Namer:
    """Return the namer for a user's choice.

    The choice is "lexicon" (synonyms of the words of a name), "plain" (meaningless names such as `v0`), a
    mapping from old to new names, or a namer. Any other text raises `InputError`.
    """
    if isinstance(names, Mapping):
        return lambda name, kind, values: filter(None, [names.get(name)])
    if not isinstance(names, str):
        return names
    if names == "lexicon":
        return synonyms
    if names == "plain":
        return plain
    raise InputError(f"unknown names {names!r}; expected lexicon, plain, or a file of names")


def is_name(text: str) -> bool:
    """Return whether a name can be used unchanged as an identifier in Java and in Python."""
    # Python changes other names: it normalizes identifiers to NFKC, and adds the name of the class around to
    # names that begin with `__`.
    is_plain = unicodedata.normalize("NFKC", text) == text and not text.startswith("__")
    return is_plain and text.isidentifier()


def choose_name(
    symbol: Symbol, namer: Namer, why_taken: Callable[[str], str | None]
) -> tuple[str | None, str]:
    """Return the first usable proposal and ""; or None and the reason why there is none.

    `why_taken` tells why a proposal cannot be used; None if it can be.
    """
    reasons = []
    for new in namer(symbol.name, symbol.kind, symbol.values):
        reason = why_taken(new) if is_name(new) else "cannot be a name in both languages"
        if reason is None:
            return new, ""
        reasons.append(f"{new[:40]!r} {reason}")
    more = f", and {len(reasons) - _SHOWN} more are taken" if len(reasons) > _SHOWN else ""
    return None, ": ".join(
        [
            f"there is no new name for {symbol.name}",
            *(["; ".join(reasons[:_SHOWN]) + more] if reasons else []),
        ]
    )


def words_of(text: str) -> set[str]:
    """Return the words of a text, unchanged and in Unicode normal form NFKC.

    A new name must differ from all these words.
    """
    # Python treats two identifiers with the same NFKC form as equal.
    return set(re.findall(r"[\w$]+", f"{text} {unicodedata.normalize('NFKC', text)}"))


def read_names(file: Path) -> dict[str, str]:
    """Read new names from a file with lines `OLD<tab>NEW`; blank lines are skipped.

    A line of another form, a repeated name, or a new name that no language can use raises `InputError`.
    """
    # One file of names serves both languages: a word that only one of them reserves is refused later, for
    # each source.
    reserved = frozenset[str].intersection(*(find_rules(language).reserved for language in LANGUAGES))
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, line in read_lines(file):
        fields = line.split("\t")
        if not line.strip():
            continue
        if len(fields) != 2 or not all(field.isidentifier() for field in fields):
            raise InputError(f"{file}:{number}: expected an old and a new name, separated by a tab")
        if fields[0] in names:
            raise InputError(f"{file}:{number}: {fields[0]} has a new name already")
        if fields[1] in places:
            raise InputError(
                f"{file}:{number}: {fields[1]} is the new name of line {places[fields[1]]} already"
            )
        if fields[1] in reserved or not is_name(fields[1]) or fields[0] == fields[1]:
            raise InputError(f"{file}:{number}: {fields[1]} cannot be a new name for {fields[0]}")
        names[fields[0]] = fields[1]
        places[fields[1]] = number
    return names
