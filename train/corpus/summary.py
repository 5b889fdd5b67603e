"""Where the first sentence ends."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?]+[\"')\]]*(?=\s)|[。！？]")  # noqa: RUF001

# After these a point ends no sentence; after those only where the next word is capitalized.
_NEVER = """
e.g eg i.e ie cf vs viz approx resp incl excl fig eq eqs sec dr mr mrs ms prof a.k.a aka w.r.t wrt dept eds
vol pp al
"""
_SOMETIMES = """
etc inc ltd co jr sr st a.m p.m u.s max min num nos ed p ch ca def param params arg args ex ref refs spec
"""
_never, _sometimes = frozenset(_NEVER.split()), frozenset(_SOMETIMES.split())


def first_sentence(paragraph: str) -> str:
    """Return the beginning of a paragraph up to the end of its first sentence.

    >>> first_sentence("Rounds, e.g. to 1.5. Never fails.")
    'Rounds, e.g. to 1.5.'
    """
    for match in _END.finditer(paragraph):
        if _ends(paragraph[: match.start()], match[0], paragraph[match.end() :].lstrip()):
            return paragraph[: match.end()]
    return paragraph


def _ends(before: str, mark: str, after: str) -> bool:
    """Say whether a sentence ends between the two, at `mark`."""
    word = re.split(r"[\s(\[\"'/]", before[-40:])[-1].lower()
    quoted = len(mark) > 1 and before[-1:] in ("'", '"', "(", " ")  # '.' speaks of a point
    if quoted or not re.search(r"\w", before) or word in _never:
        return False
    if word in _sometimes or mark.startswith("..") or not mark.startswith("."):
        return not (after[:1].islower() or after[:1] in (",", ";", ":", ")", "]"))
    initial = len(word) == 1 and before[-1:].isupper() and not after[:1].islower()  # J. Doe
    return not initial and after[:1] not in (",", ";", ")")
