"""The file name that the Java compiler requires for a source text: the name of its public class."""

from __future__ import annotations

import re

# A comment, a text block, a string or a character: none of them declares a class.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_PUBLIC_TYPE = re.compile(
    r"\bpublic\s+(?:(?:abstract|final|strictfp|sealed|non-sealed)\s+"
    r"|@\s*(?!interface\b)[\w$.]+(?:\s*\{)?\s*)*"  # an annotation; the brace stands for its values
    r"(?:class|interface|@\s*interface|enum|record)\s+([^\W\d][\w$]*)"
)


def file_name(source: str) -> str:
    """Return the file name that javac requires for a Java source text.

    javac requires that a source file has the name of its public class. For a text without a public class,
    the name is Main.java.
    """
    code = _outermost(_NOT_CODE.sub(" ", source))
    match = _PUBLIC_TYPE.search(code)
    return f"{match[1]}.java" if match else "Main.java"


def _outermost(code: str) -> str:
    """Remove the text inside braces and parentheses, so that a search finds only the outermost classes.

    Each outermost pair of braces or parentheses, with all text inside, is replaced by a single `{`. For
    example, `@X(1) class A { int x; } class B {}` becomes `@X{ class A { class B {`.
    """
    parts, depth = [], 0
    for part in re.split(r"([{}()])", code):
        if part in ("{", "}", "(", ")"):
            depth += 1 if part in ("{", "(") else -1
        elif depth == 0:
            parts.append(part)
    return "{".join(parts)
