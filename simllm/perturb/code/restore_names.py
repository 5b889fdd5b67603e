"""Replacement of old names by new names, or vice versa, in texts about renamed code, such as stack traces."""

from __future__ import annotations

import re
from collections.abc import Mapping


def rename_text(text: str, names: Mapping[str, str]) -> str:
    """Replace old names by new names in a text, such as a stack trace. Only whole words are replaced.

    Args:
        text: The text.
        names: A mapping from old to new names.
    """
    if not names:
        return text
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w$])(?:{words})(?![\w$])", lambda found: names[found[0]], text)


def restore(text: str, names: Mapping[str, str]) -> str:
    """Replace new names by the old ones in a text about rewritten code, such as a patch.

    All whole words that equal a new name are replaced. This is safe, because the original source does not
    contain the new names.

    Args:
        text: The text, which contains new names.
        names: A mapping from old to new names, as in `Rewrite.names`.
    """
    return rename_text(text, {new: old for old, new in names.items()})
