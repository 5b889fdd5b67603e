"""The documentation of one function, as the extraction returns it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """The documentation of one function or method, as plain text."""

    summary: str  # the first sentence
    description: str = ""  # all the prose, which begins with the summary; "" if there is no more
    language: str = ""  # python, javascript, typescript, java, go, ruby, php
    function: str = ""  # Class.method where the class is known
    path: str = ""  # within the repository
    repository: str = ""
    licence: str = ""  # name of the repository's licence file
    overrides: str = ""  # supertypes whose method this one may override, separated by spaces
