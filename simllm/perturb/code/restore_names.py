"""Replacement of names in a text about code, such as a stack trace, after names in the code were changed.

`rename_text` replaces old names by new names, so that the text fits the changed code. `restore` replaces new
names by old names, so that a text about the changed code fits the original code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def rename_text(text: str, names: Mapping[str, str]) -> str:
    """Replace the old names of functions and variables by new names in a text, such as a stack trace.

    Only whole words are replaced.

    Args:
        text: The text.
        names: A mapping from old to new names.
    """
    if not names:
        return text
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w$])(?:{words})(?![\w$])", lambda found: names[found[0]], text)


def restore(text: str, names: Mapping[str, str]) -> str:
    """Give renamed functions and variables their old names again, in a text such as a patch.

    A rewrite of the code gave them new names. All whole words of the text that equal a new name are replaced
    by the old name. This is safe, because the code before the rewrite does not contain the new names.

    Args:
        text: The text, such as a patch of the rewritten code.
        names: A mapping from old to new names, as in `Rewrite.names`.
    """
    return rename_text(text, {new: old for old, new in names.items()})
