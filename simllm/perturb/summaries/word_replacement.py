"""Replacement of words in a summary, and search for the words that can be replaced."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.summaries.function_words import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS, PREPOSITIONS
from simllm.perturb.summaries.inflection import indefinite_article
from simllm.perturb.summaries.lexicon import Lexicon, Replacement, Replacements

_LONGEST = 3  # words of the longest phrase that is replaced


def replaceable(
    words: list[str], table: Replacements, lexicon: Lexicon
) -> Iterator[tuple[int, int, list[str]]]:
    """Find the words and short phrases of a summary that can be replaced.

    Args:
        words: The words of the summary.
        table: For each word or phrase, the words that may replace it, with their part of speech.
        lexicon: Tells which words are verbs and nouns. A replacement is used only if it has the same part of
            speech as the old word.

    Yields:
        For each word or phrase that can be replaced: the index of its first word, the index after its last
        word, and the list of its replacements.
    """
    for start in range(len(words)):
        for end in range(min(start + _LONGEST, len(words)), start, -1):
            options = table.get(" ".join(words[start:end]))
            if options:
                fitting = [option.word for option in options if _fits(words, start, end, option, lexicon)]
                if fitting:
                    yield start, end, fitting
                    break


def replace(words: list[str], start: int, end: int, new: str) -> list[str]:
    """Replace some words of a text, and correct an indefinite article before the new words.

    For example, if "list" becomes "array" in "a list", the result is "an array".

    Args:
        words: The words of the text.
        start: The index of the first word to replace.
        end: The index after the last word to replace.
        new: The new word or phrase.

    Returns:
        The words of the new text.
    """
    before = words[:start]
    if before and before[-1] in ("a", "an"):
        before = [*before[:-1], indefinite_article(new)]
    return [*before, *new.split(), *words[end:]]


def replace_each(text: str, table: Replacements, lexicon: Lexicon) -> Iterator[str]:
    """Yield one text for each possible replacement of a word or phrase in a text.

    Each yielded text has exactly one word or phrase replaced.

    Args:
        text: The cleaned text.
        table: For each word or phrase, the words that may replace it.
        lexicon: Tells which words are verbs and nouns. A word is only replaced by a word with the same part
            of speech.
    """
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)


def _fits(words: list[str], start: int, end: int, option: Replacement, lexicon: Lexicon) -> bool:
    """Return whether a word or phrase in a text can be replaced by a new word with a given part of speech.

    The result is True if the old word or phrase probably has the same part of speech in this text. For
    example, a verb must not replace a noun.

    Args:
        words: The words of the text.
        start: The index of the first word of the old phrase.
        end: The index after the last word of the old phrase.
        option: The new word, with its part of speech.
        lexicon: Tells which words are verbs and nouns.
    """
    word, before = words[start], words[start - 1] if start else ""
    after = words[end] if end < len(words) else ""
    is_noun, is_verb = word in lexicon.nouns, word in lexicon.verb_forms
    may_be_verb = not start or before in BEFORE_VERBS
    if option.part_of_speech == "verb":
        if word in FUNCTION_WORDS or (" " in option.word and not after):  # "does", "exception handling"
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
    if option.part_of_speech == "preposition":  # "to" before an infinitive is not a preposition
        return bool(after) and before not in PREPOSITIONS and not lexicon.is_base(after)
    return True
