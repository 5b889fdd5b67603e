"""Extraction of the first sentence of a paragraph."""

from __future__ import annotations

import re

_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s)|[。！？]")  # noqa: RUF001
_VISIBLE = re.compile(r"\S")

# Abbreviations. After those in the first list, a period never ends a sentence; after those in the second
# list, it ends one unless a small letter or punctuation follows.
_NEVER = """
e.g eg i.e ie cf vs viz approx resp incl excl fig eq eqs sec dr mr mrs ms prof a.k.a aka w.r.t wrt dept eds
vol pp al
"""
_SOMETIMES = """
etc inc ltd co jr sr st a.m p.m u.s max min num nos ed p ch ca def param params arg args ex ref refs spec
"""
_never, _sometimes = frozenset(_NEVER.split()), frozenset(_SOMETIMES.split())


def first_sentence(paragraph: str) -> str:
    """Return the first sentence of a paragraph; the whole paragraph if no end of a sentence is found.

    Examples:
        >>> first_sentence("Rounds, e.g. to 1.5. Never fails.")
        'Rounds, e.g. to 1.5.'
    """
    word = re.search(r"\w", paragraph)
    if not word:
        return paragraph
    for match in _END.finditer(paragraph, word.end()):
        before = paragraph[max(0, match.start() - 40) : match.start()]
        after = _VISIBLE.search(paragraph, match.end())
        if _ends(before, match[0], after[0] if after else ""):
            return paragraph[: match.end()]
    return paragraph


def _ends(before: str, mark: str, after: str) -> bool:
    """Return whether `mark`, with its closing quotes or brackets, ends a sentence between `before` and
    `after`.
    """
    word = re.split(r"[\s(\[\"'/]", before)[-1].lower()
    # The mark itself is quoted: '.'
    quoted = len(mark) > 1 and before[-1:] in ("'", '"', "(", " ")
    if quoted or word in _never:
        return False
    if word in _sometimes or mark.startswith("..") or not mark.startswith("."):
        return not (after.islower() or after in (",", ";", ":", ")", "]"))
    # J. Doe
    initial = len(word) == 1 and before[-1:].isupper() and not after.islower()
    return not initial and after not in (",", ";", ")")
