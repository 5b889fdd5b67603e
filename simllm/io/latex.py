"""Escaping of text for LaTeX."""

from __future__ import annotations

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}  # wrong in old fonts
_SPECIAL |= {character: f"\\{character}" for character in "&%$#_{}"}


def escape_latex(text: str) -> str:
    """Escape the characters of a text that are special in LaTeX, and put the text on one line."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))
