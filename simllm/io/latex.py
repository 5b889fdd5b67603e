"""Text as LaTeX prints it."""

from __future__ import annotations

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {character: f"\\{character}" for character in "&%$#_{}"}


def escaped(text: str) -> str:
    """The text, with what LaTeX would take for commands escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)
