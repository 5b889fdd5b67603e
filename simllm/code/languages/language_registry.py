"""The registry of programming languages: the language of each file suffix, and the rules of each language.

A new language needs a module in this package, and its file suffixes in `LANGUAGE_OF_SUFFIX`.
"""

from __future__ import annotations

from importlib import import_module

from simllm.code.languages.language import Language
from simllm.errors import InputError

LANGUAGE_OF_SUFFIX = {
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


def find_language(name: str) -> Language:
    """Return the rules of a language that a user named; InputError lists the supported languages."""
    try:
        return load_language(name)
    except KeyError:
        supported = ", ".join(sorted(set(LANGUAGE_OF_SUFFIX.values())))
        raise InputError(f"language {name!r}: expected one of {supported}") from None


def load_language(name: str) -> Language:
    """Return the rules of a language; KeyError if it is not supported."""
    if name not in LANGUAGE_OF_SUFFIX.values():
        raise KeyError(name)
    language: Language = import_module(f"simllm.code.languages.{name}").LANGUAGE
    return language
