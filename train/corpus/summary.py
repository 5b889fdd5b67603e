"""Where the first sentence ends."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?]+[\"')\]]*(?=\s)|[。！？]")  # noqa: RUF001
_ABBREVIATED = frozenset(
    "e.g eg i.e ie cf vs viz approx resp incl excl fig eq no nos sec ch ca dr mr mrs ms prof st jr sr inc ltd co "
    "a.k.a w.r.t aka wrt dept ed eds vol pp p al max min num def param params arg args ex ref refs spec".split()
)
_MAY_END = frozenset("etc al. a.m p.m u.s".split())  # at the end of a sentence, too


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
    word = re.split(r"[\s(\[\"'/]", before)[-1].lower()
    goes_on = after[:1].islower() or after[:1] in ",;:)]"
    if not re.search(r"\w", before) or word in _ABBREVIATED:
        return False
    if word in _MAY_END or mark.startswith("..") or "?" in mark or "!" in mark:
        return not goes_on
    initial = len(word) == 1 and before[-1:].isupper() and not after[:1].islower()
    return not initial and after[:1] not in (",", ";", ")")
