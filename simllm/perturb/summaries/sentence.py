"""Replacement of words in a cleaned summary."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.summaries.function_words import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS, PREPOSITIONS
from simllm.perturb.summaries.inflection import indefinite_article
from simllm.perturb.summaries.lexicon import Lexicon, Replacement, Replacements

_LONGEST = 3  # words of the longest phrase that is replaced


def replaceable(
    words: list[str], table: Replacements, lexicon: Lexicon
) -> Iterator[tuple[int, int, list[str]]]:
    """Find the words and phrases that a table can replace.

    Args:
        words: The words of a summary.
        table: Replacements of words and phrases.
        lexicon: The lexicon, for parts of speech.

    Yields:
        The first index of a phrase, the index after it, and its replacements.
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
    """Replace the words from `start` to before `end`, and correct an indefinite article before them."""
    before = words[:start]
    if before and before[-1] in ("a", "an"):
        before = [*before[:-1], indefinite_article(new)]
    return [*before, *new.split(), *words[end:]]


def _fits(words: list[str], start: int, end: int, option: Replacement, lexicon: Lexicon) -> bool:
    """Return whether the words from `start` to before `end` probably have the option's part of speech."""
    word, before = words[start], words[start - 1] if start else ""
    after = words[end] if end < len(words) else ""
    is_noun, is_verb = word in lexicon.nouns, word in lexicon.verb_forms
    may_be_verb = not start or before in BEFORE_VERBS
    if option.kind == "verb":
        if word in FUNCTION_WORDS or (" " in option.word and not after):  # "does", "exception handling"
            return False
        if may_be_verb or (word.endswith(("ed", "ing")) and not is_noun):
            return True
        return word.endswith("s") and not is_noun and before not in FUNCTION_WORDS
    if option.kind == "noun" and is_verb:
        if before in PREPOSITIONS | DETERMINERS - {"to", "that"}:
            return True
        return before in ("and", "or") or not (may_be_verb or after in DETERMINERS | {"to"})
    if option.kind == "adjective":
        return not (is_verb and may_be_verb)
    if option.kind == "preposition":  # "to" before an infinitive is not a preposition
        return bool(after) and before not in PREPOSITIONS and not lexicon.is_base(after)
    return True
