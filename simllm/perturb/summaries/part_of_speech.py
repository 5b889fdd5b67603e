"""Check that a word and its replacement in a summary have the same part of speech, such as verb."""

from __future__ import annotations

from simllm.perturb.summaries.function_words import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS, PREPOSITIONS
from simllm.perturb.summaries.lexicon import Lexicon, Replacement


def fits(words: list[str], start: int, end: int, option: Replacement, lexicon: Lexicon) -> bool:
    """Return whether a new word has the same part of speech as the word or phrase that it may replace.

    The part of speech of the old word or phrase is guessed from its form and the words around it. In "the
    display", for example, "display" is probably a noun, and a verb must not replace it.

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
