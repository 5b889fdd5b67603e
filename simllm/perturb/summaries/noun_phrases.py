"""Search for noun phrases in a summary."""

from __future__ import annotations

from simllm.perturb.summaries.function_words import DETERMINERS, FUNCTION_WORDS
from simllm.perturb.summaries.lexicon import Lexicon


def noun_phrase_start(words: list[str], end: int, lexicon: Lexicon, first: int = 1) -> int:
    """Return the start of a noun phrase, not before index `first`; `end` if there is no noun phrase.

    The noun phrase has one to three words after its determiner.
    """
    # With `first` 1, a verb at the beginning of the text cannot be part of the noun phrase.
    start = end
    while start > first and end - start < 3 and _may_be_in_name(words[start - 1], lexicon):
        start -= 1
    return start - 1 if first < start < end and words[start - 1] in DETERMINERS else start


def noun_phrase_end(words: list[str], start: int, lexicon: Lexicon) -> int:
    """Return the end of a noun phrase with one to three words after its determiner; `start` if none."""
    end = first = start + (start < len(words) and words[start] in DETERMINERS)
    while end < len(words) and _may_be_in_name(words[end], lexicon):
        end += 1
    # A longer run of words is probably more than one phrase.
    return end if first < end <= first + 3 else start


def is_noun(word: str, lexicon: Lexicon) -> bool:
    """Return whether a word can begin a noun phrase, as any word can that is not only a known verb."""
    return word in DETERMINERS or word in lexicon.nouns or word not in lexicon.verb_forms


def _may_be_in_name(word: str, lexicon: Lexicon) -> bool:
    """Return whether a word can be part of a noun phrase after its determiner."""
    # Participles, as in "the file containing it", begin another phrase.
    is_verb = word.endswith(("ed", "ing")) and word in lexicon.verb_forms and word not in lexicon.nouns
    return word[0].isalnum() and word not in FUNCTION_WORDS and not is_verb
