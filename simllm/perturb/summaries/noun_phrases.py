"""Search for noun phrases in a summary. A noun phrase names a thing, as "the file name" does."""

from __future__ import annotations

from simllm.perturb.summaries.function_words import DETERMINERS, FUNCTION_WORDS
from simllm.perturb.summaries.lexicon import Lexicon


def noun_phrase_start(words: list[str], end: int, lexicon: Lexicon, first: int = 1) -> int:
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


def noun_phrase_end(words: list[str], start: int, lexicon: Lexicon) -> int:
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


def is_noun(word: str, lexicon: Lexicon) -> bool:
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
