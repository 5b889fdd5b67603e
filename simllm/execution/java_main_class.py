"""Search for the main class of a compiled Java program: the class with the method `main`."""

from __future__ import annotations

from collections.abc import Mapping

# The name and the type of `main` as they stand in a class file.
_MAIN = (b"\x01\x00\x04main", b"\x01\x00\x16([Ljava/lang/String;)V")


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
