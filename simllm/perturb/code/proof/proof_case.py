"""Data types for comparing the behaviour of variants (rewritten functions) and their originals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from simllm.execution import Sandbox

VERDICTS = ("proven", "tests passed", "compiled", "parsed", "refuted")


@dataclass(frozen=True)
class ProofCase:
    """A function and its variant (a rewritten version), whose behaviour is to be compared.

    Attributes:
        id: The name of the function in reports.
        language: The language: "java" or "python".
        original: The source of the function.
        variant: The source of the variant.
        names: A mapping from old names to the new names in the variant. The function itself may be renamed.
        around: Further code that the function needs to run. In Python, the code before it in its module; in
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
    """An input on which a variant (a rewritten function) behaves differently from its original.

    Attributes:
        arguments: The arguments of the call, as text.
        original: A description of the original's behaviour: the result or exception, the arguments after the
            call, the fields or global variables, and the printed text.
        variant: A description of the variant's behaviour in the same form.
    """

    arguments: str
    original: str
    variant: str


@dataclass(frozen=True)
class Proof:
    """The outcome of running a variant (a rewritten function) and its original to compare their behaviour.

    The outcome may also be negative, and it is never a proof in the mathematical sense. Mutants measure
    the strength of the evidence: they are variants with a deliberate mistake, which good inputs should
    reveal.

    Attributes:
        id: The name of the function in reports.
        verdict: One of these:
            "proven": both versions compile, and behave the same on all inputs (at least one).
            "tests passed": a command of the user, such as a test suite, succeeds on both versions.
            "compiled": both versions compile, but there is no input on which they could be compared.
            "parsed": nothing is known except that the code can be parsed. The original cannot be compiled on
                its own, for example because it needs other code.
            "refuted": the variant does not compile, or behaves differently.
        inputs: The number of inputs on which both versions behave the same.
        mutants: The number of mutants that compile.
        killed_mutants: The number of mutants that behave differently from the original on these inputs.
        reason: The reason for the verdict; empty if it is "proven" or "tests passed".
        counterexample: An input on which the versions differ; None if there is none.
    """

    id: str
    verdict: str
    inputs: int = 0
    mutants: int = 0
    killed_mutants: int = 0
    reason: str = ""
    counterexample: Counterexample | None = None

    @property
    def power(self) -> float | None:
        """The share of mutants (variants with a deliberate mistake) that the test inputs reveal.

        An input reveals a mutant if the original and the mutant behave differently on this input. The share
        is None if there are no mutants.
        """
        return self.killed_mutants / self.mutants if self.mutants else None


@dataclass(frozen=True)
class Task:
    """A function and its variant (a rewritten version), with the inputs and mutants to run.

    Attributes:
        case: The function and its variant.
        arguments: For each input, a readable text with the arguments.
        mutants: The sources of the mutants: variants with a deliberate mistake.
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


Prover = Callable[[Sandbox], list[Proof]]  # runs a prepared batch, and returns its proofs in order
