"""Classes for a function with its variant (a rewritten version), and for the inputs on which both are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ProofCase:
    """A function and its variant (a rewritten version), whose behaviour is to be compared.

    Attributes:
        id: The name of the function in reports.
        language: The language: "java" or "python".
        original: The source of the function.
        variant: The source of the variant.
        names: A mapping from old names to the new names in the variant. The function itself may be renamed.
        around: Further code that the function needs to run. In Python, this is the part of the module before
            the function. In Java, this is the other members of the function's class.
    """

    id: str
    language: str
    original: str
    variant: str
    names: Mapping[str, str] = field(default_factory=dict)
    around: str = ""


@dataclass(frozen=True)
class Task:
    """A function and its variant (a rewritten version), with inputs to test whether both behave the same.

    The function and the variant are called on the same inputs. So are the mutants, which are variants with a
    deliberate mistake. They show whether the inputs would reveal a mistake in the variant.

    Attributes:
        case: The function and its variant.
        arguments: For each input, a readable text with the arguments.
        mutants: The sources of the mutants.
        obstacle: The reason why there are no inputs; empty if there are some.
    """

    case: ProofCase
    arguments: list[str]
    mutants: list[str]
    obstacle: str = ""

    @property
    def sides(self) -> list[str]:
        """The sources of all versions of the function: the original, the variant, then the mutants."""
        return [self.case.original, self.case.variant, *self.mutants]
