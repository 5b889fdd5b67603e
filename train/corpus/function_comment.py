"""The class `Comment`: the documentation of a function, as the corpus stores it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """The documentation of one function or method, as plain text. Unknown values are "".

    Attributes:
        description: The whole text, which begins with the summary; "" if there is only the summary.
        language: In small letters, such as "python".
        function: The full name, with the names of the classes, as in `Class.method`.
        path: The path of the source file in the repository.
        licence: The name of the licence file in the repository.
        overrides: Names of the supertypes of the method's class, separated by spaces.
    """

    summary: str
    description: str = ""
    language: str = ""
    function: str = ""
    path: str = ""
    repository: str = ""
    licence: str = ""
    overrides: str = ""
