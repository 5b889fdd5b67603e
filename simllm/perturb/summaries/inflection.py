"""Function words, and the inflected forms of verbs and nouns."""

from __future__ import annotations

import re
from collections.abc import Mapping

DETERMINERS = frozenset("the a an this that these those its their each every any all some no".split())
PREPOSITIONS = frozenset(
    "of in on at by for from to into onto with without within between under over after before as than "
    "through via per about against during until since across along using".split()
)
CONJUNCTIONS = frozenset("and or but if when whether while unless".split())
FUNCTION_WORDS = frozenset(DETERMINERS | PREPOSITIONS | CONJUNCTIONS) | frozenset(
    "is are was were be been being has have had do does did not "
    "it they them he she we you i which who whose will can could should must may might so then else there "
    "here only also such same other both either neither".split()
)
BEFORE_VERBS = frozenset(
    "to that which and or then will can could should must may might not never always also it they we you "
    "who only does do did cannot".split()
)


NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()

# The forms of a word in a fixed order, so that a word can be replaced by the same form of another word.
Forms = tuple[str, ...]
THIRD_PERSON = 1  # index in the forms of a verb
Irregular = Mapping[tuple[str, str], Forms]  # all forms of an irregular word; key (part of speech, base form)

_ENDINGS = [("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y")]
_ENDINGS += [("ing", ""), ("ing", "e"), ("ying", "ie")]


def inflect(part_of_speech: str, base: str, irregular: Irregular) -> Forms:
    """Return all forms of a word or phrase, given its base form.

    A verb has five forms ("take", "takes", "took", "taken", "taking"), a noun two (singular, plural), and
    other words one. The first word of a verb phrase and the last word of a noun phrase are inflected.
    """
    if (part_of_speech, base) in irregular:
        return irregular[part_of_speech, base]
    if part_of_speech == "verb":
        head, space, rest = base.partition(" ")
        forms = irregular.get((part_of_speech, head)) or (
            head,
            _add_s(head),
            _add_ed(head),
            _add_ed(head),
            _add_ing(head),
        )
        return tuple(form + space + rest for form in forms)
    if part_of_speech == "noun":
        rest, space, head = base.rpartition(" ")
        forms = irregular.get((part_of_speech, head)) or (head, _add_s(head))
        return tuple(rest + space + form for form in forms)
    return (base,)


def word_family(form: str, irregular: Irregular) -> set[str]:
    """Return all forms of a verb or noun, given one form, and some that are no words, such as "listsed"."""
    bases = {base for (_, base), forms in irregular.items() if form in forms}
    # Any ending is tried, so some bases are no words; a base counts only if it gives the form back.
    bases |= {form.removesuffix(old) + new for old, new in _ENDINGS if form.endswith(old)}
    forms = (inflect(kind, base, irregular) for kind in ("verb", "noun") for base in bases if base)
    return {form}.union(*(some for some in forms if form in some))


def _add_s(word: str) -> str:
    if re.search(r"(?:s|x|z|ch|sh)$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def _add_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if re.search(r"[^aeiou]y$", word) else word + "ed"


def _add_ing(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    # The "e" stays in "seeing", "toeing" and "dyeing".
    return (word[:-1] if re.search(r"[^eoy]e$", word) else word) + "ing"


def indefinite_article(following: str) -> str:
    """Return "a" or "an", whichever is correct before a word."""
    # Letters and abbreviations that are spelled out, and so begin with a vowel: "an f", "an xml file".
    letters = r"(?:[aefhilmnorsx]|url|api|xml|html|http|sql|rgb|sha|md5|id)\b"
    if re.match(r"(?:hour|honest|heir)", following) or (re.match(letters, following) and len(following) < 5):
        return "a" if following in ("url",) else "an"
    # Words that begin with the sound of "you" or "one".
    if re.match(r"(?:uni(?![mn])|us[aeru]|uri|url|utf|uuid|one|once|eu)", following):
        return "a"
    return "an" if following[:1] in "aeiou" else "a"
