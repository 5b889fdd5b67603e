"""Detection of English texts by their alphabet and by frequent words of other languages."""

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

    A text counts as English unless one of these is true:

    - More than 10% of its letters are not ASCII.
    - It has at least two common words of other languages (such as "der"), and they outnumber its common
      English words (such as "the").

    Examples:
        >>> is_english("Gibt den Namen der Klasse zurück.")
        False
    """
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        if sum(letter.isascii() for letter in letters) < 0.9 * len(letters):
            return False
    words = re.findall(r"\w+", text.lower())
    return sum(word in _foreign for word in words) <= max(1, sum(word in _english for word in words))
