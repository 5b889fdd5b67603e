"""The documentation comment of a function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """The documentation of one function or method, as plain text.

    Attributes:
        summary: The first sentence.
        description: The whole text, which begins with the summary; "" if it is only the summary.
        language: python, javascript, typescript, java, go, ruby or php.
        function: The name, with the names of its classes: Class.method.
        path: The path of the file in the repository.
        repository: The name of the repository.
        licence: The name of the licence file of the repository.
        overrides: Supertypes whose method this one may override, separated by spaces.
    """

    summary: str
    description: str = ""
    language: str = ""
    function: str = ""
    path: str = ""
    repository: str = ""
    licence: str = ""
    overrides: str = ""
