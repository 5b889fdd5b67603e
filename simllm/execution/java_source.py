"""Names in Java programs: the required name of the source file, and the class with the method `main`."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A comment, a text block, a string or a character: none of them declares a class.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_PUBLIC_TYPE = re.compile(
    r"\bpublic\s+(?:(?:abstract|final|strictfp|sealed|non-sealed)\s+"
    r"|@\s*(?!interface\b)[\w$.]+(?:\s*\{)?\s*)*"  # an annotation; the brace stands for its values
    r"(?:class|interface|@\s*interface|enum|record)\s+([^\W\d][\w$]*)"
)
# The name and the type of `main` as they stand in a class file.
_MAIN = (b"\x01\x00\x04main", b"\x01\x00\x16([Ljava/lang/String;)V")


def file_name(source: str) -> str:
    """Return the file name that javac requires for a Java source text.

    javac requires that a source file has the name of its public class. For a text without a public class,
    the name is Main.java.
    """
    code = _outermost(_NOT_CODE.sub(" ", source))
    match = _PUBLIC_TYPE.search(code)
    return f"{match[1]}.java" if match else "Main.java"


def _outermost(code: str) -> str:
    """Replace each outermost pair of braces or parentheses, with everything inside, by a single `{`.

    The declarations of the outermost classes remain, without their bodies.

    For example, `@X(1) class A { int x; } class B {}` becomes `@X{ class A { class B {`.
    """
    parts, depth = [], 0
    for part in re.split(r"([{}()])", code):
        if part in ("{", "}", "(", ")"):
            depth += 1 if part in ("{", "(") else -1
        elif depth == 0:
            parts.append(part)
    return "{".join(parts)


def main_class(source_name: str, classes: Mapping[str, bytes]) -> str:
    """Choose the class that starts a compiled Java program: a class that has a method `main`.

    If several classes have such a method, the class with the name of the source file is preferred.

    Args:
        source_name: The name of the source file, such as "Main.java".
        classes: The content of each class file by its relative path.

    Returns:
        The name of the class with its package, such as "pack.Main". If no class has `main`, the name of the
        source file without ".java".
    """
    own = source_name.removesuffix(".java")
    names = [
        path.removesuffix(".class").replace("/", ".")
        for path, content in classes.items()
        if all(part in content for part in _MAIN)
    ]
    return next((name for name in names if name.rpartition(".")[2] == own), names[0] if names else own)
