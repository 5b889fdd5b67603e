"""Choice of the indefinite article by rules for the word after it."""

from __future__ import annotations

import re


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
