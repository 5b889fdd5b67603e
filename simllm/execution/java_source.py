"""Names in Java programs: the file that a source must have, and the class that has `main`."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A comment, a text block, a string or a character: none of them declares a class.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"""(?:\\.|.)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_PUBLIC_TYPE = re.compile(
    r"\bpublic\s+(?:(?:abstract|final|strictfp|sealed|non-sealed)\s+)*"
    r"(?:class|interface|@\s*interface|enum|record)\s+([^\W\d][\w$]*)"
)
# The name and the type of `main` as they stand in a class file.
_MAIN = (b"\x01\x00\x04main", b"\x01\x00\x16([Ljava/lang/String;)V")


def file_name(source: str) -> str:
    """Return the name of the file that javac expects for a source: that of its public class, or Main.java."""
    code = _outermost(_NOT_CODE.sub(" ", source))
    match = _PUBLIC_TYPE.search(code)
    return f"{match[1]}.java" if match else "Main.java"


def _outermost(code: str) -> str:
    """Return the code outside of all braces."""
    parts, depth = [], 0
    for part in re.split(r"([{}])", code):
        if part in ("{", "}"):
            depth += 1 if part == "{" else -1
        elif depth == 0:
            parts.append(part)
    return "{".join(parts)


def main_class(source_name: str, classes: Mapping[str, bytes]) -> str:
    """Return the class that can be started, with its package.

    Args:
        source_name: The name of the source file; if its own class has `main`, that is the class.
        classes: The class files by relative path.
    """
    own = source_name.removesuffix(".java")
    names = [
        path.removesuffix(".class").replace("/", ".")
        for path, content in classes.items()
        if all(part in content for part in _MAIN)
    ]
    return next((name for name in names if name.rpartition(".")[2] == own), names[0] if names else own)
