"""Check that a word and its replacement in a summary have the same part of speech."""

from __future__ import annotations

from simllm.perturb.summaries.function_words import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS, PREPOSITIONS
from simllm.perturb.summaries.lexicon import Lexicon, Replacement


def fits(words: list[str], start: int, end: int, option: Replacement, lexicon: Lexicon) -> bool:
    """Return whether a new word has the part of speech of the phrase that it may replace.

    The part of speech of the phrase is guessed from its form and the words around: in "the display",
    "display" is probably a noun.
    """
    word, before = words[start], words[start - 1] if start else ""
    after = words[end] if end < len(words) else ""
    is_noun, is_verb = word in lexicon.nouns, word in lexicon.verb_forms
    may_be_verb = not start or before in BEFORE_VERBS
    if option.part_of_speech == "verb":
        # A function word such as "does" is no full verb. At the end, as in "exception handling", a phrase of
        # several words would not fit.
        if word in FUNCTION_WORDS or (" " in option.word and not after):
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
    # "to" before an infinitive is not a preposition.
    if option.part_of_speech == "preposition":
        return bool(after) and before not in PREPOSITIONS and not lexicon.is_base(after)
    return True
