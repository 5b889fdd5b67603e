"""Inflected forms of English words: regular rules, and a table of what they get wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Forms of one place in this order belong together: a replacement takes the form that it replaces.
Forms = tuple[str, ...]
THIRD_PERSON = 1  # its place among the forms of a verb


def inflected(kind: str, base: str, irregular: Mapping[tuple[str, str], Forms]) -> Forms:
    """All forms of a word of this kind: base, -s, past, participle, -ing of a verb, singular and
    plural of a noun, the word itself of any other. Of several words a verb's first, a noun's
    last is inflected.
    """
    if (kind, base) in irregular:
        return irregular[kind, base]
    if kind == "verb":
        head, space, rest = base.partition(" ")
        forms = irregular.get((kind, head)) or (head, _s(head), _ed(head), _ed(head), _ing(head))
        return tuple(form + space + rest for form in forms)
    if kind == "noun":
        rest, space, head = base.rpartition(" ")
        forms = irregular.get((kind, head)) or (head, _s(head))
        return tuple(rest + space + form for form in forms)
    return (base,)


def article(following: str) -> str:
    """The indefinite article before a word."""
    letters = r"(?:[aefhilmnorsx]|url|api|xml|html|http|sql|rgb|sha|md5|id)\b"
    if re.match(r"(?:hour|honest|heir)", following) or (re.match(letters, following) and len(following) < 5):
        return "a" if following in ("url",) else "an"
    if re.match(r"(?:uni|use|usu|uri|url|utf|one|once|eu)", following) and not following.startswith("unin"):
        return "a"
    return "an" if following[:1] in "aeiou" else "a"


def _s(word: str) -> str:
    if re.search(r"(?:s|x|z|ch|sh)$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def _ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if re.search(r"[^aeiou]y$", word) else word + "ed"


def _ing(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    return (word[:-1] if re.search(r"[^eoy]e$", word) else word) + "ing"
