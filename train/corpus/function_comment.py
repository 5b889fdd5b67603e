"""The class `Comment`: the documentation of a function, as the corpus stores it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """The documentation of one function or method, as plain text. Unknown values are "".

    Attributes:
        summary: The first sentence.
        description: The whole text, which begins with the summary; "" if there is only the summary.
        language: The programming language in small letters, such as "python".
        function: The function's full name, which begins with the names of its classes, as in `Class.method`.
        path: The path of the source file in the repository.
        repository: The name of the repository.
        licence: The name of the licence file in the repository.
        overrides: Names of the supertypes of the method's class, separated by spaces. The method may override
            a method of these supertypes.
    """

    summary: str
    description: str = ""
    language: str = ""
    function: str = ""
    path: str = ""
    repository: str = ""
    licence: str = ""
    overrides: str = ""
