"""The supported programming languages, with a module for each language."""

from __future__ import annotations

from importlib import import_module

from simllm.code.languages.base import Function, Language
from simllm.errors import InputError

__all__ = ["LANGUAGES", "Function", "Language", "find", "load"]

# The language of each file suffix.
LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".java": "java",
    ".go": "go",
    ".rb": "ruby",
    ".rake": "ruby",
    ".php": "php",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
}


def find(name: str) -> Language:
    """Return the rules that find functions in code, for a programming language that the user named.

    Unlike `load`, this function raises an error with a message for the user.

    Args:
        name: The name of the language, such as "python".

    Returns:
        The rules, as an object of the class `Language`.

    Raises:
        InputError: The language is not supported. The message lists the supported languages.
    """
    try:
        return load(name)
    except KeyError:
        supported = ", ".join(sorted(set(LANGUAGES.values())))
        raise InputError(f"language {name!r}: expected one of {supported}") from None


def load(name: str) -> Language:
    """Import the module of a programming language, and return its rules that find functions.

    Args:
        name: The name of the language, such as "python".

    Returns:
        The rules, as an object of the class `Language`.

    Raises:
        KeyError: The language is not supported.
    """
    if name not in LANGUAGES.values():
        raise KeyError(name)
    language: Language = import_module(f"simllm.code.languages.{name}").LANGUAGE
    return language
