"""Inflected forms of English words, by regular rules and a table of exceptions."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Forms of one place in this order belong together: a replacement takes the form that it replaces.
Forms = tuple[str, ...]
THIRD_PERSON = 1  # its place among the forms of a verb
Irregular = Mapping[tuple[str, str], Forms]  # by kind and base

_ENDINGS = [("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y")]
_ENDINGS += [("ing", ""), ("ing", "e"), ("ying", "ie")]


def inflected(kind: str, base: str, irregular: Irregular) -> Forms:
    """Return all forms of a word.

    A verb has base, -s, past, participle and -ing; a noun has singular and plural; any other word has
    only itself. Of several words the first of a verb is inflected, the last of a noun.
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


def family(form: str, irregular: Irregular) -> set[str]:
    """Return this form and all forms of the verbs and nouns that it may belong to."""
    bases = {base for (_, base), forms in irregular.items() if form in forms}
    bases |= {form.removesuffix(old) + new for old, new in _ENDINGS if form.endswith(old)}
    forms = (inflected(kind, base, irregular) for kind in ("verb", "noun") for base in bases if base)
    return {form}.union(*(some for some in forms if form in some))


def article(following: str) -> str:
    """Return the indefinite article before a word."""
    letters = r"(?:[aefhilmnorsx]|url|api|xml|html|http|sql|rgb|sha|md5|id)\b"
    if re.match(r"(?:hour|honest|heir)", following) or (re.match(letters, following) and len(following) < 5):
        return "a" if following in ("url",) else "an"
    if re.match(r"(?:uni(?![mn])|us[aeru]|uri|url|utf|uuid|one|once|eu)", following):
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
