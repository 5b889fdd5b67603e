"""Which words of a cleaned summary may be replaced, and what the sentence is afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.edits.inflection import article
from simllm.edits.lexicon import Lexicon, Replacement, Replacements

DETERMINERS = frozenset("the a an this that these those its their each every any all some no".split())
PREPOSITIONS = frozenset(
    "of in on at by for from to into onto with without within between under over after before as than "
    "through via per about against during until since across along using".split()
)
FUNCTION_WORDS = frozenset(DETERMINERS | PREPOSITIONS) | frozenset(
    "and or but if when whether while unless is are was were be been being has have had do does did not "
    "it they them he she we you i which who whose will can could should must may might so then else there "
    "here only also such same other both either neither".split()
)
_BEFORE_VERBS = frozenset(
    "to that which and or then will can could should must may might not never always also it they we you "
    "who only does do did cannot".split()
)
_LONGEST = 3  # words that are replaced together


def replaceable(
    words: list[str], table: Replacements, lexicon: Lexicon
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (start, end, replacements) of each run of words that the table has an answer for."""
    for start in range(len(words)):
        for end in range(min(start + _LONGEST, len(words)), start, -1):
            options = table.get(" ".join(words[start:end]))
            if options:
                fitting = [option.word for option in options if _fits(words, start, option, lexicon)]
                if fitting:
                    yield start, end, fitting
                    break


def replace(words: list[str], start: int, end: int, new: str) -> list[str]:
    """The words with [start, end) replaced; an indefinite article before it agrees."""
    before = words[:start]
    if before and before[-1] in ("a", "an"):
        before = [*before[:-1], article(new)]
    return [*before, *new.split(), *words[end:]]


def _fits(words: list[str], start: int, option: Replacement, lexicon: Lexicon) -> bool:
    """Whether the word at `start` is likely to be of the option's kind there."""
    word, before = words[start], words[start - 1] if start else ""
    is_noun = word in lexicon.nouns
    if option.kind == "verb":
        if word.endswith(("ed", "ing")) and not is_noun:
            return True
        if not start or before in _BEFORE_VERBS:
            return True
        return word.endswith("s") and not is_noun and before not in FUNCTION_WORDS
    if option.kind == "noun":
        if word in lexicon.verb_forms:
            return bool(start) and before not in _BEFORE_VERBS - {"and", "or"}
        return True
    return True
