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

    A point in a number, or after an abbreviation such as `e.g.`, does not end the sentence.

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
    """Return whether a punctuation mark ends a sentence, and is not part of an abbreviation or a quotation.

    Args:
        before: The text before the mark, at most 40 characters.
        mark: The mark and closing quotes or brackets after it, such as `.` or `!")`.
        after: The next character that is not a space; "" at the end of the paragraph.
    """
    word = re.split(r"[\s(\[\"'/]", before)[-1].lower()
    quoted = len(mark) > 1 and before[-1:] in ("'", '"', "(", " ")  # the mark itself is quoted: '.'
    if quoted or word in _never:
        return False
    if word in _sometimes or mark.startswith("..") or not mark.startswith("."):
        return not (after.islower() or after in (",", ";", ":", ")", "]"))
    initial = len(word) == 1 and before[-1:].isupper() and not after.islower()  # J. Doe
    return not initial and after not in (",", ";", ")")
