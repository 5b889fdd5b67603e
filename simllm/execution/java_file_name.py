"""The file name that the Java compiler requires for a source text: the name of its public class."""

from __future__ import annotations

import re

# A comment, a text block, a string or a character: none of them declares a class. One without an end goes on
# to the end of the text or line; the time would be quadratic if the search began again inside it.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?(?:\*/|\Z)|"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?',
    re.DOTALL,
)
_TOKEN = re.compile(r"@\s*+[\w$.]+|non-sealed|[\w$]+|\S")
_BLANKS = re.compile(r"\s+")
_NAME = re.compile(r"[^\W\d][\w$]*")
_MODIFIERS = ("abstract", "final", "strictfp", "sealed", "non-sealed")
_TYPES = ("class", "interface", "@interface", "enum", "record")


def file_name(source: str) -> str:
    """Return the file name that javac requires for a Java source text.

    javac requires that a source file has the name of its public class. For a text without a public class,
    the name is Main.java.
    """
    is_public, before = False, ""
    tokens = iter(_TOKEN.findall(_outermost(_NOT_CODE.sub(" ", source))))
    for token in tokens:
        token = _BLANKS.sub("", token)
        if token in _TYPES:
            name = next(tokens, "")
            if is_public and _NAME.fullmatch(name):
                return f"{name}.java"
            is_public = name == "public"
        else:  # the brace stands for the values of an annotation
            belongs = (
                token in _MODIFIERS or token.startswith("@") or (token == "{" and before.startswith("@"))
            )
            is_public = token == "public" or (is_public and belongs)
        before = token
    return "Main.java"


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
