"""Detection of English by the alphabet and by frequent words of other languages."""

from __future__ import annotations

import re

# The foreign words are frequent in their languages, and are no English words, abbreviations or names.
_ENGLISH = "a an and are as at be by for from if in is it of on or that the this to with"
_FOREIGN = """
aus bei das dem den der des dies ein eine einen für ist mit nicht oder und von wenn werden wird zu zum zur
au aux avec ce cette dans du elle est et être il le les ou pas pour que qui sur un une
con cuando del el esta este los las lo para por su sus una uno y
da dos em não nas pela pelo são uma che di della gli nel sono
een het naar niet voor wordt zijn och att som är inte till jest nie się dla lub
"""
_english, _foreign = frozenset(_ENGLISH.split()), frozenset(_FOREIGN.split())


def is_english(text: str) -> bool:
    """Return whether a text is probably English.

    It is not if over 10% of its letters are not ASCII, or if common words of other languages (at least two)
    outnumber its common English words.

    Examples:
        >>> is_english("Gibt den Namen der Klasse zurück.")
        False
    """
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        if sum(letter.isascii() for letter in letters) < 0.9 * len(letters):
            return False
    words = re.findall(r"\w+", text.lower())
    # One foreign word alone may be a name.
    return sum(word in _foreign for word in words) <= max(1, sum(word in _english for word in words))
