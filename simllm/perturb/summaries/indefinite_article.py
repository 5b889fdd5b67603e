"""Choice of the indefinite article, "a" or "an", by rules for the word after it."""

from __future__ import annotations

import re


def indefinite_article(following: str) -> str:
    """Return the indefinite article, "a" or "an", that is correct before the word `following`."""
    letters = r"(?:[aefhilmnorsx]|url|api|xml|html|http|sql|rgb|sha|md5|id)\b"
    if re.match(r"(?:hour|honest|heir)", following) or (re.match(letters, following) and len(following) < 5):
        return "a" if following in ("url",) else "an"
    if re.match(r"(?:uni(?![mn])|us[aeru]|uri|url|utf|uuid|one|once|eu)", following):
        return "a"
    return "an" if following[:1] in "aeiou" else "a"
