"""Edits that change the meaning of a summary.

Each kind of edit is a function. The function yields one edited text for each place that the edit fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS, FUNCTION_WORDS
from simllm.perturb.summaries.inflection import THIRD_PERSON
from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.numerals import other_number
from simllm.perturb.summaries.word_replacement import replace, replaceable
from simllm.text_cleaning import clean

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
_SYMMETRIC = re.compile(r"compar|equal|between|distance|same|match|merge|swap|intersect|union|join|similar")
_SWAPPED_AROUND = frozenset("to from into onto with by of in on before after over than as for using".split())


def change(text: str, lexicon: Lexicon, random: np.random.Generator) -> tuple[str, str] | None:
    """Change the meaning of a summary by one edit of a random kind.

    Args:
        text: The cleaned summary.
        lexicon: The word lists.
        random: The generator that chooses the kind of edit and the place in the text.

    Returns:
        The kind of edit, such as "negation", and the changed summary; None if no edit fits.
    """
    for number in random.permutation(len(KINDS)):
        name = list(KINDS)[number]
        changed = (clean(option) for option in KINDS[name](text, lexicon, random))
        options = [option for option in dict.fromkeys(changed) if option not in ("", text)]
        if options:
            return name, options[random.integers(len(options))]
    return None


def opposites(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word that has opposites: `text` with this word replaced by a random opposite.

    `lexicon` has the opposites. `random` chooses one opposite.
    """
    return _replace_randomly(text, lexicon.opposites, lexicon, random)


def neighbours(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word that has neighbours: `text` with this word replaced by a neighbour.

    Neighbours are words of the same category, such as "row" and "column". `lexicon` has the neighbours.
    `random` chooses one neighbour.
    """
    return _replace_randomly(text, lexicon.neighbours, lexicon, random)


def numbers(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each number in `text`: this number is replaced by a random other number.

    The word "one" is not replaced, because it may be a pronoun. `lexicon` is not used; all edits take the
    same arguments.
    """
    words = text.split()
    for place, word in enumerate(words):
        if word != "one" and (other := other_number(word, random)) is not None:  # "one" may be a pronoun
            yield " ".join(replace(words, place, place + 1, other))


def negations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each place in `text` where a negation can be added or removed.

    For example, "is empty" becomes "is not empty". `lexicon` has the verb forms. `random` is not used; all
    edits take the same arguments.
    """
    for pattern, new in _NEGATIONS:
        for match in pattern.finditer(text):
            yield text[: match.start()] + match.expand(new) + text[match.end() :]
    words = text.split()
    for place, word in enumerate(words):
        forms = lexicon.verb_forms.get(word, ("",))
        is_noun = word in lexicon.nouns
        if forms[0] in ("", "be", "do", "have"):
            continue
        if word == forms[THIRD_PERSON] and not (place and (is_noun or words[place - 1] in DETERMINERS)):
            yield " ".join([*words[:place], "does not", forms[0], *words[place + 1 :]])
        elif word == forms[0] and not place and (not is_noun or DETERMINERS.intersection(words[1:2])):
            yield f"do not {text}"


def roles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each preposition between two noun phrases: the noun phrases are swapped.

    For example, "copies a to b" becomes "copies b to a". If `text` has a word such as "compare", nothing is
    yielded, because the order does not matter there. `lexicon` tells which words are verbs and nouns.
    `random` is not used; all edits take the same arguments.
    """
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place, word in enumerate(words):
        if word in _SWAPPED_AROUND:
            start = _noun_phrase_start(words, place, lexicon)
            end = _noun_phrase_end(words, place + 1, lexicon)
            left, right = words[start:place], words[place + 1 : end]
            infinitive = word == "to" and right and lexicon.is_base(right[0])
            if left and right and left != right and not infinitive:
                yield " ".join([*words[:start], *right, word, *left, *words[end:]])


def agents(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each verb with a subject and an object: the subject and the object are swapped.

    For example, "a dog is chasing a cat" becomes "a cat is chasing a dog". If `text` has a word such as
    "compare", nothing is yielded, because the order does not matter there. `lexicon` tells which words are
    verbs and nouns. `random` is not used; all edits take the same arguments.
    """
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place in range(1, len(words) - 1):
        verb = place
        if words[place] in ("is", "are", "was", "were"):
            verb = place + 1  # "is chasing", "is chased by"
            if not words[verb].endswith(("ing", "ed")):
                continue
        elif words[place] not in lexicon.verb_forms or words[place] in lexicon.nouns:
            continue
        after = verb + 1 + (words[verb + 1 : verb + 2] == ["by"])
        start = _noun_phrase_start(words, place, lexicon, first=0)
        end = _noun_phrase_end(words, after, lexicon)
        left, right = words[start:place], words[after:end]
        named = {*left[:1], *right[:1]} & DETERMINERS
        if left and right and left != right and named:  # without a determiner, `left` is often no noun
            yield " ".join([*words[:start], *right, *words[place:after], *left, *words[end:]])


def parts(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word or phrase that can be left out: `text` without this word or phrase.

    For example, "sorts keys and values" becomes "sorts keys" or "sorts values". The word "only" can also be
    left out, and so can a condition or exception at the end of the text, such as "unless it is empty".
    `lexicon` tells which words are verbs and nouns. `random` is not used; all edits take the same arguments.
    """
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
            end = place - 1 if words[place - 1] == "," else place
            yield " ".join([*words[:end], *stop])


KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "opposite": opposites,
    "neighbour": neighbours,
    "number": numbers,
    "negation": negations,
    "roles": roles,
    "agents": agents,
    "parts": parts,
}


def _replace_randomly(
    text: str, table: Replacements, lexicon: Lexicon, random: np.random.Generator
) -> Iterator[str]:
    """Yield one text for each word that has replacements: `text` with a random replacement of this word.

    Args:
        text: The cleaned text.
        table: For each word or phrase, the words that may replace it.
        lexicon: Tells which words are verbs and nouns; a replacement must have the same part of speech.
        random: The generator that chooses one of the replacements.
    """
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        others = [option for option in options if option not in words]  # avoid "between min and min"
        if others:
            new = others[random.integers(len(others))]
            if not (new in DETERMINERS and DETERMINERS.intersection(words[end : end + 1])):  # "no the"
                yield " ".join(replace(words, start, end, new))


def _noun_phrase_start(words: list[str], end: int, lexicon: Lexicon, first: int = 1) -> int:
    """Find the start of the noun phrase that ends before a given index.

    A noun phrase has an optional determiner, such as "the", and then one to three words.

    Args:
        words: The words of a text.
        end: The index after the last word of the noun phrase.
        lexicon: Tells which words are verbs and nouns.
        first: The lowest index at which the noun phrase may begin. With 1, a verb at the beginning of the
            text cannot be part of the noun phrase.

    Returns:
        The index of the first word; `end` if there is no noun phrase.
    """
    start = end
    while start > first and end - start < 3 and _may_be_in_name(words[start - 1], lexicon):
        start -= 1
    return start - 1 if first < start < end and words[start - 1] in DETERMINERS else start


def _noun_phrase_end(words: list[str], start: int, lexicon: Lexicon) -> int:
    """Find the end of the noun phrase that begins at a given index.

    A noun phrase has an optional determiner, such as "the", and then one to three words.

    Args:
        words: The words of a text.
        start: The index of the first word of the noun phrase.
        lexicon: Tells which words are verbs and nouns.

    Returns:
        The index after the last word; `start` if there is no noun phrase, or if it has more than three words
        after the determiner.
    """
    end = first = start + (start < len(words) and words[start] in DETERMINERS)
    while end < len(words) and _may_be_in_name(words[end], lexicon):
        end += 1
    return end if first < end <= first + 3 else start


def _is_noun(word: str, lexicon: Lexicon) -> bool:
    """Return whether a word can be the first word of a noun phrase.

    This is true for determiners, such as "the", for known nouns, and for all words that are not known verbs.
    """
    return word in DETERMINERS or word in lexicon.nouns or word not in lexicon.verb_forms


def _may_be_in_name(word: str, lexicon: Lexicon) -> bool:
    """Return whether a word can be part of a noun phrase that names a thing, such as "file name".

    The result is False for function words, punctuation marks and participles. The determiner of a noun
    phrase, such as "the", is a function word, so the caller must check for it separately.
    """
    is_verb = word.endswith(("ed", "ing")) and word in lexicon.verb_forms and word not in lexicon.nouns
    return word[0].isalnum() and word not in FUNCTION_WORDS and not is_verb
