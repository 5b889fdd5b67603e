"""The variants whose behaviour is to be proven, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from simllm.execution import Sandbox

VERDICTS = ("proven", "tests passed", "compiled", "parsed", "refuted")


@dataclass(frozen=True)
class ProofCase:
    """A function and its variant.

    Attributes:
        id: The name of the function in reports.
        language: The language: "java" or "python".
        original: The source of the function.
        variant: The source of the variant.
        names: The new name of each renamed name. The function itself may be renamed.
        around: Code that the function needs. In Python, the text that stands before it in its module; in
            Java, the other members of its class.
    """

    id: str
    language: str
    original: str
    variant: str
    names: Mapping[str, str] = field(default_factory=dict)
    around: str = ""


@dataclass(frozen=True)
class Counterexample:
    """An input for which a variant behaves differently.

    Attributes:
        arguments: The arguments.
        original: What the original does: its result or exception, the arguments after the call, fields or
            global variables, and the printed text.
        variant: What the variant does.
    """

    arguments: str
    original: str
    variant: str


@dataclass(frozen=True)
class Proof:
    """What is known about the behaviour of a variant.

    Attributes:
        id: The id of the case.
        verdict: "proven": both sides compile and agree on all inputs, of which there is one at least.
            "tests passed": a command passes on both sides. "compiled": both sides compile, but no inputs
            could be made or run. "parsed": the original does not compile alone. "refuted": the variant does
            not compile, or behaves differently.
        inputs: The number of inputs on which both sides agree.
        twins: The number of wrong twins that compile. A wrong twin is a variant with a mistake.
        refuted_twins: The number of wrong twins that the same inputs refute.
        reason: Why there is no stronger verdict; empty if the variant is proven.
        counterexample: An input for which the variant behaves differently.
    """

    id: str
    verdict: str
    inputs: int = 0
    twins: int = 0
    refuted_twins: int = 0
    reason: str = ""
    counterexample: Counterexample | None = None

    @property
    def power(self) -> float | None:
        """The share of wrong twins that the inputs refute; None without twins."""
        return self.refuted_twins / self.twins if self.twins else None


@dataclass(frozen=True)
class Task:
    """A case with its inputs and wrong twins.

    Attributes:
        case: The case.
        arguments: The inputs, as text for readers.
        twins: The sources of the wrong twins.
        obstacle: Why there are no inputs; empty if there are some.
    """

    case: ProofCase
    arguments: list[str]
    twins: list[str]
    obstacle: str = ""

    @property
    def sides(self) -> list[str]:
        """The sources of all sides: the original, the variant, and the twins."""
        return [self.case.original, self.case.variant, *self.twins]


Prover = Callable[[Sandbox], list[Proof]]  # runs a prepared batch, and returns its proofs in order
