"""Rules that change the grammar of a summary but keep its meaning: voice, word order, genitive, mood."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simllm.perturb.summaries.inflection import DETERMINERS, FUNCTION_WORDS, PREPOSITIONS, THIRD_PERSON
from simllm.perturb.summaries.lexicon import Lexicon

_PLURAL = ("s", "data", "children", "indices", "vertices", "people")
_SUBJECTS = ("this method", "this function", "the method", "it")
_MOVABLE = PREPOSITIONS - {"of", "than", "as", "about"}  # begin phrases that modify the whole sentence
# Words that end like adverbs.
_NO_ADVERBS = frozenset(
    "only apply reply supply multiply comply imply rely family assembly anomaly tally italy".split()
)


def restructure(words: list[str], lexicon: Lexicon, random: np.random.Generator) -> list[str]:
    """Change the words of a sentence by one random rule; return them unchanged if no rule fits."""
    for number in random.permutation(len(_RULES)):
        changed = _RULES[number](words, lexicon, random)
        if changed and changed != words:
            return changed
    return words


def passive(words: list[str], lexicon: Lexicon) -> list[str] | None:
    """Change a sentence without a subject: "copies the file to disk" becomes "the file is copied to disk"."""
    forms = lexicon.verb_forms.get(words[0], ("",))
    end = _noun_phrase_end(words, 1)
    # A comma or "and" joins two clauses or objects, and only one would become passive.
    if words[0] not in forms[:2] or end == 1 or {",", "and"} & set(words):
        return None
    if words[1] not in DETERMINERS or words[end : end + 1] in (["that"], ["or"]):
        return None
    # "the size of the list" moves as a whole.
    while words[end : end + 1] == ["of"] and (further := _noun_phrase_end(words, end + 1)) > end + 1:
        end = further
    return [*words[1:end], _form_of_be(words[end - 1]), forms[3], *words[end:]]


def passive_by(words: list[str], lexicon: Lexicon) -> list[str] | None:
    """Change a sentence with a subject: "a user opens the file" becomes "the file is opened by a user"."""
    if words[0] not in DETERMINERS or {",", "and", "or", "that"} & set(words):
        return None
    for place in range(2, min(_noun_phrase_end(words, 0) + 1, len(words) - 1)):
        forms = lexicon.verb_forms.get(words[place], ("",))
        end = _noun_phrase_end(words, place + 1)
        is_active = words[place] == forms[THIRD_PERSON % len(forms)] and words[place] not in FUNCTION_WORDS
        # Words such as "calls" may be nouns, but no noun precedes a determiner.
        if is_active and words[place + 1] in DETERMINERS and end > place + 1:
            thing, rest = words[place + 1 : end], words[end:]
            # A second object, or a noun phrase of which only a part was found.
            if rest[:1] and (rest[0] in DETERMINERS or rest[0] == "of"):
                return None
            return [*thing, _form_of_be(thing[-1]), forms[3], "by", *words[:place], *rest]
    return None


def fronted(words: list[str], random: np.random.Generator) -> list[str] | None:
    """Move the last prepositional phrase to the front: "to disk, copies the file"."""
    stop = ["."] if words[-1] == "." else []
    body = words[: len(words) - len(stop)]
    places = [i for i, word in enumerate(body) if i > 1 and word in _MOVABLE]
    # The phrase may belong to one clause only.
    if not places or {",", "if", "when", "and", "or"} & set(body):
        return None
    place = places[-1]
    comma = [","] if random.random() < 0.5 else []
    return [*body[place:], *comma, *body[:place], *stop]


def adverb_moved(words: list[str]) -> list[str] | None:
    """Move an adverb from the front to the end or vice versa: "copies it recursively"."""
    stop = ["."] if words[-1] == "." else []
    body = words[: len(words) - len(stop)]
    if len(body) < 3:
        return None
    if _is_adverb(body[0]):
        return [*body[1:], body[0], *stop]
    if _is_adverb(body[-1]) and body[-2] not in DETERMINERS:  # not "loads the assembly"
        return [body[-1], *body[:-1], *stop]
    return None


def genitive(words: list[str], random: np.random.Generator) -> list[str] | None:
    """Turn "the size of the list" into "the list's size" or "the list size", or "the list's size" back."""
    for place, word in enumerate(words):
        if word == "of" and place:
            start, end = _noun_phrase_start(words, place), _noun_phrase_end(words, place + 1)
            owner, owned = words[place + 1 : end], words[start:place]
            # Without determiners, "of" often stands in a fixed expression, such as "out of memory".
            if not owner or len(owned) < 2 or owned[0] not in DETERMINERS or owner[0] not in DETERMINERS:
                continue
            bare = owned[1:]
            whose = [*owner[:-1], owner[-1] + ("'" if owner[-1].endswith("s") else "'s")]
            return [*words[:start], *(whose if random.random() < 0.5 else owner), *bare, *words[end:]]
        # Here, "'s" is short for "is".
        is_verb = word in ("it's", "there's", "he's", "she's", "what's", "that's")
        if word.endswith("'s") and not is_verb and place and words[place - 1] in DETERMINERS:
            end = _noun_phrase_end(words, place + 1)
            if end > place + 1:
                owner = [words[place - 1], word.removesuffix("'s")]
                return [*words[: place - 1], "the", *words[place + 1 : end], "of", *owner, *words[end:]]
    return None


def mood(words: list[str], lexicon: Lexicon, random: np.random.Generator) -> list[str] | None:
    """Turn "returns it" into "return it" or "this method returns it", and both back into "returns it"."""
    forms = lexicon.verb_forms.get(words[0], ("",))
    for subject in _SUBJECTS:
        size = len(subject.split())
        if words[:size] == subject.split() and words[size : size + 1] and words[size] in lexicon.verb_forms:
            return words[size:]
    if words[0] not in forms[:2]:
        return None
    if words[0] == forms[THIRD_PERSON] and random.random() < 0.4:
        return [*_SUBJECTS[random.integers(len(_SUBJECTS))].split(), *words]
    return [forms[0] if words[0] == forms[THIRD_PERSON] else forms[THIRD_PERSON], *words[1:]]


# Each rule takes words, the lexicon and a random generator; its function takes what it needs of them.
_RULES: list[Callable[[list[str], Lexicon, np.random.Generator], list[str] | None]] = [
    lambda words, lexicon, _: passive(words, lexicon),
    lambda words, lexicon, _: passive_by(words, lexicon),
    lambda words, _, random: fronted(words, random),
    lambda words, *_: adverb_moved(words),
    lambda words, _, random: genitive(words, random),
    mood,
]


# Not the finder of `meaning_changes`, which finds at most three words and ends before a participle: it must
# be sure of a phrase that it drops or swaps. Here, a phrase moves as a whole, such as "the selected files".
def _noun_phrase_end(words: list[str], start: int) -> int:
    """Return the end of a noun phrase with one to four content words; `start` if there is none."""
    end = first = start + (start < len(words) and words[start] in DETERMINERS)
    while (
        end < len(words) and end - first < 4 and words[end] not in FUNCTION_WORDS and words[end][0].isalnum()
    ):
        end += 1
    return end if end > first else start


def _noun_phrase_start(words: list[str], end: int) -> int:
    """Return the start of a noun phrase with up to four content words; `end` if there is none."""
    start = end
    while (
        start and end - start < 4 and words[start - 1] not in FUNCTION_WORDS and words[start - 1][0].isalnum()
    ):
        start -= 1
    return start - 1 if start and words[start - 1] in DETERMINERS else start


def _form_of_be(noun: str) -> str:
    """Return "is" for a singular noun, and "are" for a plural noun."""
    return "are" if noun.endswith(_PLURAL) and not noun.endswith("ss") else "is"


def _is_adverb(word: str) -> bool:
    return word.endswith("ly") and len(word) > 4 and word not in _NO_ADVERBS
