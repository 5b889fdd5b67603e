"""Inflection of English words, by regular rules and a table of irregular words."""

from __future__ import annotations

import re
from collections.abc import Mapping

# The forms of a word in a fixed order, so that a word can be replaced by the same form of another word.
Forms = tuple[str, ...]
THIRD_PERSON = 1  # index in the forms of a verb
Irregular = Mapping[tuple[str, str], Forms]  # forms of irregular words, by kind and base form

_ENDINGS = [("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y")]
_ENDINGS += [("ing", ""), ("ing", "e"), ("ying", "ie")]


def inflect(kind: str, base: str, irregular: Irregular) -> Forms:
    """Return all forms of a word or phrase.

    A verb has base form, -s, past, participle and -ing. A noun has singular and plural. Other words have
    one form. In a phrase, the first word of a verb is inflected, or the last word of a noun.

    Args:
        kind: The part of speech: "verb", "noun" or another one.
        base: The base form.
        irregular: The irregular words.
    """
    if (kind, base) in irregular:
        return irregular[kind, base]
    if kind == "verb":
        head, space, rest = base.partition(" ")
        forms = irregular.get((kind, head)) or (
            head,
            _add_s(head),
            _add_ed(head),
            _add_ed(head),
            _add_ing(head),
        )
        return tuple(form + space + rest for form in forms)
    if kind == "noun":
        rest, space, head = base.rpartition(" ")
        forms = irregular.get((kind, head)) or (head, _add_s(head))
        return tuple(rest + space + form for form in forms)
    return (base,)


def word_family(form: str, irregular: Irregular) -> set[str]:
    """Return all forms of all verbs and nouns that a form may belong to, and the form itself."""
    bases = {base for (_, base), forms in irregular.items() if form in forms}
    bases |= {form.removesuffix(old) + new for old, new in _ENDINGS if form.endswith(old)}
    forms = (inflect(kind, base, irregular) for kind in ("verb", "noun") for base in bases if base)
    return {form}.union(*(some for some in forms if form in some))


def indefinite_article(following: str) -> str:
    """Return "a" or "an", as it must be before a word."""
    letters = r"(?:[aefhilmnorsx]|url|api|xml|html|http|sql|rgb|sha|md5|id)\b"
    if re.match(r"(?:hour|honest|heir)", following) or (re.match(letters, following) and len(following) < 5):
        return "a" if following in ("url",) else "an"
    if re.match(r"(?:uni(?![mn])|us[aeru]|uri|url|utf|uuid|one|once|eu)", following):
        return "a"
    return "an" if following[:1] in "aeiou" else "a"


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
    return (word[:-1] if re.search(r"[^eoy]e$", word) else word) + "ing"
