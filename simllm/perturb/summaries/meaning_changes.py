"""Edits that change the meaning of a summary, in one word or phrase."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.inflection import DETERMINERS, FUNCTION_WORDS, NUMBER_WORDS, THIRD_PERSON
from simllm.perturb.summaries.lexicon import (
    Lexicon,
    Replacements,
    replace,
    replaceable,
)
from simllm.text_cleaning import clean


def opposites(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace a word or phrase by a random opposite, such as "open" by "close"."""
    return _replace_randomly(text, lexicon.opposites, lexicon, random)


def neighbours(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace a word by a random neighbour, such as "row" by "column"."""
    return _replace_randomly(text, lexicon.neighbours, lexicon, random)


def _replace_randomly(
    text: str, table: Replacements, lexicon: Lexicon, random: np.random.Generator
) -> Iterator[str]:
    """Replace each word or phrase by a random word from a table that does not occur in the text."""
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        # This avoids "between min and min".
        others = [option for option in options if option not in words]
        if others:
            new = others[random.integers(len(others))]
            # This avoids "no the".
            if not (new in DETERMINERS and DETERMINERS.intersection(words[end : end + 1])):
                yield " ".join(replace(words, start, end, new))


_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()
_TIMES = "once twice".split()


def numbers(text: str, random: np.random.Generator) -> Iterator[str]:
    """Replace each number by another one: "3" for "2"."""
    words = text.split()
    for place, word in enumerate(words):
        # "one" may be a pronoun.
        if word != "one" and (other := _other_number(word, random)) is not None:
            yield " ".join(replace(words, place, place + 1, other))


def _other_number(word: str, random: np.random.Generator) -> str | None:
    """Return another number in the same spelling; None if a word is not a number.

    It is random for number words and whole numbers of up to nine digits, and else one larger.
    """
    for series in (NUMBER_WORDS, _ORDINALS, _TIMES):
        if word in series:
            others = [other for other in series if other != word][:7]
            return others[random.integers(len(others))]
    try:
        value = float(word)
    except ValueError:
        return None
    if not word.isdigit() or len(word) > 9:
        return f"{value + 1:.15g}" if np.isfinite(value) else None
    near = [int(value) + 1, int(value) * 2 or 3, max(int(value) - 1, 0), int(value) + 10]
    others = [str(number) for number in near if number != int(value)]
    return others[random.integers(len(others))]


# Patterns that add or remove a negation. (?!…) prevents double negations. `if` is not replaced if it
# means `whether`.
_ASKING = (
    "check checks checking test tests determine determines verify verifies tell tells see know out ask asks"
)
_NOT_ASKING = "".join(rf"(?<!\b{word} )" for word in _ASKING.split())
_NEGATIONS = [
    (re.compile(pattern), new)
    for pattern, new in [
        (r"\b(is|are|was|were|should|must|may|will|does|do|did|could)\b(?! not\b)", r"\1 not"),
        (r"\b(is|are|was|were|should|must|may|will|does|could) not\b", r"\1"),
        (r"\bdo not (\w+)\b", r"\1"),
        (r"\bcan\b(?! not\b|')", "cannot"),
        (r"\b(?:cannot|can not|can't)\b", "can"),
        (r"\b(is|are|was|were|does|do|did|should|could|would)n't\b", r"\1"),
        (rf"{_NOT_ASKING}\bif (?!not\b)", "unless "),
        (r"\bwhen (?!to\b)", "unless "),
        (r"\bunless\b", "if"),
        (r"\bnon - ", ""),
        (r"\bno\b", "some"),
        (r"\bnot\b ", ""),
        (r"\bwithout\b", "with"),
        (r"\bwith\b(?! no\b)", "without"),
        (r"\bnever\b", "always"),
    ]
]


def negations(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Add or remove a negation: "is empty" becomes "is not empty"."""
    for pattern, new in _NEGATIONS:
        for match in pattern.finditer(text):
            yield text[: match.start()] + match.expand(new) + text[match.end() :]
    words = text.split()
    for place, word in enumerate(words):
        forms = lexicon.verb_forms.get(word, ("",))
        may_be_noun = word in lexicon.nouns
        # Auxiliaries are negated by the patterns above.
        if forms[0] in ("", "be", "do", "have"):
            continue
        # "the calls" and "updates" in "gets updates" may be nouns.
        if word == forms[THIRD_PERSON] and not (place and (may_be_noun or words[place - 1] in DETERMINERS)):
            yield " ".join([*words[:place], "does not", forms[0], *words[place + 1 :]])
        elif word == forms[0] and not place and (not may_be_noun or DETERMINERS.intersection(words[1:2])):
            yield f"do not {text}"


# With such a word, the swap would not change the meaning.
_SYMMETRIC = re.compile(r"compar|equal|between|distance|same|match|merge|swap|intersect|union|join|similar")
_SWAPPED_AROUND = frozenset("to from into onto with by of in on before after over than as for using".split())


def roles(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Swap the noun phrases around a preposition: "copies a to b" becomes "copies b to a"."""
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place, word in enumerate(words):
        if word in _SWAPPED_AROUND:
            start = _noun_phrase_start(words, place, lexicon)
            end = _noun_phrase_end(words, place + 1, lexicon)
            left, right = words[start:place], words[place + 1 : end]
            # In "used to open", "open" is a verb.
            infinitive = word == "to" and right and lexicon.is_base(right[0])
            if left and right and left != right and not infinitive:
                yield " ".join([*words[:start], *right, word, *left, *words[end:]])


def agents(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Swap subject and object: "a dog is chasing a cat" becomes "a cat is chasing a dog"."""
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place in range(1, len(words) - 1):
        verb = place
        if words[place] in ("is", "are", "was", "were"):
            # "is chasing", "is chased by".
            verb = place + 1
            if not words[verb].endswith(("ing", "ed")):
                continue
        elif words[place] not in lexicon.verb_forms or words[place] in lexicon.nouns:
            continue
        after = verb + 1 + (words[verb + 1 : verb + 2] == ["by"])
        start = _noun_phrase_start(words, place, lexicon, first=0)
        end = _noun_phrase_end(words, after, lexicon)
        left, right = words[start:place], words[after:end]
        named = {*left[:1], *right[:1]} & DETERMINERS
        # Without a determiner, `left` is often no noun.
        if left and right and left != right and named:
            yield " ".join([*words[:start], *right, *words[place:after], *left, *words[end:]])


def parts(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Leave out a noun beside "and", the word "only", or a condition or exception at the end."""
    words = text.split()
    stop = ["."] if words[-1:] == ["."] else []
    for place, word in enumerate(words):
        if word == "and" and 0 < place < len(words) - 1 and _is_noun(words[place + 1], lexicon):
            start = _noun_phrase_start(words, place, lexicon)
            end = _noun_phrase_end(words, place + 1, lexicon)
            if start < place and end > place + 1:
                yield " ".join([*words[:place], *words[end:]])
                yield " ".join([*words[:start], *words[place + 1 :]])
        elif word == "only" and len(words) > 2:
            yield " ".join([*words[:place], *words[place + 1 :]])
        elif word in ("if", "when", "unless", "except", "until", "while") and place > 2:
            # A condition at the beginning would leave no sentence.
            end = place - 1 if words[place - 1] == "," else place
            yield " ".join([*words[:end], *stop])


def _noun_phrase_start(words: list[str], end: int, lexicon: Lexicon, first: int = 1) -> int:
    """Return the start of a noun phrase, not before index `first`; `end` if there is no noun phrase.

    The noun phrase has one to three words after its determiner.
    """
    # With `first` 1, a verb at the beginning of the text cannot be part of the noun phrase.
    start = end
    while start > first and end - start < 3 and _may_be_in_name(words[start - 1], lexicon):
        start -= 1
    return start - 1 if first < start < end and words[start - 1] in DETERMINERS else start


def _noun_phrase_end(words: list[str], start: int, lexicon: Lexicon) -> int:
    """Return the end of a noun phrase with one to three words after its determiner; `start` if none."""
    end = first = start + (start < len(words) and words[start] in DETERMINERS)
    while end < len(words) and _may_be_in_name(words[end], lexicon):
        end += 1
    # A longer run of words is probably more than one phrase.
    return end if first < end <= first + 3 else start


def _is_noun(word: str, lexicon: Lexicon) -> bool:
    """Return whether a word can begin a noun phrase, as any word can that is not only a known verb."""
    return word in DETERMINERS or word in lexicon.nouns or word not in lexicon.verb_forms


def _may_be_in_name(word: str, lexicon: Lexicon) -> bool:
    """Return whether a word can be part of a noun phrase after its determiner."""
    # Participles, as in "the file containing it", begin another phrase.
    is_verb = word.endswith(("ed", "ing")) and word in lexicon.verb_forms and word not in lexicon.nouns
    return word[0].isalnum() and word not in FUNCTION_WORDS and not is_verb


# An edit takes a text, the lexicon and a random generator; its function takes what it needs of them.
KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "opposite": opposites,
    "neighbour": neighbours,
    "number": lambda text, _, random: numbers(text, random),
    "negation": lambda text, lexicon, _: negations(text, lexicon),
    "roles": lambda text, lexicon, _: roles(text, lexicon),
    "agents": lambda text, lexicon, _: agents(text, lexicon),
    "parts": lambda text, lexicon, _: parts(text, lexicon),
}


def change(text: str, lexicon: Lexicon, random: np.random.Generator) -> tuple[str, str] | None:
    """Make one edit of a random kind; return the kind and the changed summary, or None if no edit fits."""
    for number in random.permutation(len(KINDS)):
        name = list(KINDS)[number]
        changed = (clean(option) for option in KINDS[name](text, lexicon, random))
        # A `dict` drops repeated texts but, unlike a set, keeps their order, on which the random choice
        # depends.
        options = [option for option in dict.fromkeys(changed) if option not in ("", text)]
        if options:
            return name, options[random.integers(len(options))]
    return None
