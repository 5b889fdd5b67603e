"""Printable names for figures and reports, such as the names of metrics and data sets."""

from __future__ import annotations

import unicodedata

from simllm.text_cleaning import encodable

_MOST_CHARACTERS = 40  # in a figure or in the header of a column


def label(text: str) -> str:
    """Put a name on one line without control characters; "(blank)" if nothing is left."""
    # Format characters (Cf) join emoji and mark the direction of writing; they change no line.
    shown = "".join(c if c.isprintable() or unicodedata.category(c) == "Cf" else " " for c in encodable(text))
    return " ".join(shown.split()) or "(blank)"


def short_label(text: str) -> str:
    """Make a label of at most 40 characters; a longer name is cut and ends in "…"."""
    shown = label(text)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 1] + "…"
