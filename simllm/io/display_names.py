"""Printable names for figures and reports, such as the names of metrics and data sets."""

from __future__ import annotations

import unicodedata

from simllm.text_cleaning import encodable

_MOST_CHARACTERS = 40  # in a figure or in the header of a column


def label(text: str) -> str:
    """Make a name printable for figures and reports: one line without control characters.

    The result is "(blank)" if nothing is left.
    """
    shown = "".join(c if c.isprintable() or unicodedata.category(c) == "Cf" else " " for c in encodable(text))
    return " ".join(shown.split()) or "(blank)"


def short_label(text: str) -> str:
    """Make a name printable for figures and column headers: one line of at most 40 characters.

    A longer name is cut, and ends in "…".
    """
    shown = label(text)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 1] + "…"
