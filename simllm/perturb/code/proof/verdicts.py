"""The cases and tasks of a comparison, and its results: proofs and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from simllm.execution import Sandbox
from simllm.perturb.code.proof.harness import FIRST_MUTANT, ORIGINAL, VARIANT, CaseResults


@dataclass(frozen=True)
class ProofCase:
    """A function and its variant, whose behaviour is to be compared.

    Attributes:
        id: The name of the function in reports.
        language: "java" or "python".
        names: The new name of each renamed symbol, possibly also of the function itself.
        around: Code that the function needs to run: in Python, the part of the module before it; in Java, the
            other members of its class.
    """

    id: str
    language: str
    original: str
    variant: str
    names: Mapping[str, str] = field(default_factory=dict)
    around: str = ""


@dataclass(frozen=True)
class Task:
    """A case with what it is run on.

    Attributes:
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
        """The sources of the original, the variant and the mutants."""
        return [self.case.original, self.case.variant, *self.mutants]


VERDICTS = ("proven", "unproven", "tests passed", "compiled", "parsed", "refuted")


@dataclass(frozen=True)
class Counterexample:
    """An input on which a variant behaves differently from its original.

    A behaviour is the result or exception, the arguments after the call, the fields or global variables, and
    the printed text.
    """

    arguments: str
    original: str
    variant: str


@dataclass(frozen=True)
class Proof:
    """The outcome of a comparison, which is never a proof in the mathematical sense.

    Attributes:
        id: The name of the function in reports.
        verdict: One of these:
            "proven": both sides compile and behave the same on all inputs (at least one), and the inputs
            reveal at least one mutant, so that they could have revealed a mistake.
            "unproven": both behave the same on all inputs, but the inputs reveal no mutant.
            "tests passed": a command of the user, such as a test suite, succeeds on both sides.
            "compiled": both compile, but there is no input on which they could be compared.
            "parsed": nothing is known except that the code can be parsed. The original cannot be compiled on
                its own, for example because it needs other code.
            "refuted": the variant does not compile, or behaves differently.
        inputs: The number of inputs on which the original and the variant behave the same.
        mutants: The number of mutants that compile.
        killed_mutants: The number of mutants that behave differently from the original on some input.
        reason: The reason for the verdict; empty if it is "proven" or "tests passed".
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
        """The share of mutants that the inputs reveal; None if there are no mutants."""
        return self.killed_mutants / self.mutants if self.mutants else None


Prover = Callable[[Sandbox], list[Proof]]  # runs a prepared batch, and returns its proofs in order


def verdict(task: Task, results: CaseResults) -> Proof:
    """Decide from the results of all sides whether a variant behaves like the original."""
    case_id = task.case.id
    # Code that needs other code cannot be compiled alone, which says nothing about the variant.
    if reason := results.broken.get(ORIGINAL):
        return Proof(case_id, "parsed", reason=reason)
    if reason := results.broken.get(VARIANT):
        return Proof(case_id, "refuted", reason=f"the variant {reason}")
    if ORIGINAL in results.died:
        return Proof(case_id, "compiled", reason="the function ends its process")
    agreed = len(results.outcomes[VARIANT])
    differing = results.differing_input(VARIANT)
    if differing is not None:
        counterexample = Counterexample(
            task.arguments[differing],
            results.outcomes[ORIGINAL][differing],
            results.outcomes[VARIANT][differing],
        )
        return Proof(
            case_id, "refuted", agreed - 1, reason="the outcomes differ", counterexample=counterexample
        )
    if task.arguments and not results.ended:
        # The harness ended in the middle of the case, so the side that ran last ended the process.
        if results.last_side == ORIGINAL:
            return Proof(case_id, "compiled", reason="the function ends its process")
        results.died.add(results.last_side)
        task = replace(task, mutants=task.mutants[: results.last_side - VARIANT])  # the rest was not run
    if VARIANT in results.died:
        return Proof(case_id, "refuted", agreed, reason="the variant ends its process")
    # Without a single common outcome, the sides compile, but nothing is known of what they do.
    if not agreed:
        reasons = results.left_out.most_common(1) or [("no input was run", 0)]
        return Proof(case_id, "compiled", reason=results.error or task.obstacle or reasons[0][0])
    sides = range(FIRST_MUTANT, FIRST_MUTANT + len(task.mutants))
    # A mutant that does not compile says nothing about the inputs.
    mutants = [side for side in sides if side not in results.broken]
    found = [side for side in mutants if side in results.died or results.differing_input(side) is not None]
    if not found:
        shown = (
            f"power 0: the inputs reveal none of {len(mutants)} mutants" if mutants else "no mutants were run"
        )
        return Proof(case_id, "unproven", agreed, len(mutants), reason=shown)
    return Proof(case_id, "proven", agreed, len(mutants), len(found))


@dataclass
class ProofSummary:
    """Counts over many proofs.

    Attributes:
        verdicts: The number of proofs with each verdict.
        reasons: The number of proofs with each reason, for the verdicts "unproven", "compiled" and "parsed".
        inputs: The number of inputs of all "proven" and "unproven" cases.
    """

    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    reasons: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    mutants: int = 0
    killed_mutants: int = 0

    def add(self, proof: Proof) -> None:
        """Count one proof."""
        self.verdicts[proof.verdict] += 1
        if proof.verdict in ("unproven", "compiled", "parsed"):
            self.reasons[proof.reason] += 1
        if proof.verdict in ("proven", "unproven"):
            self.inputs += proof.inputs
        self.mutants += proof.mutants
        self.killed_mutants += proof.killed_mutants

    @property
    def power(self) -> float | None:
        """The share of mutants that the inputs reveal; None if there are no mutants."""
        return self.killed_mutants / self.mutants if self.mutants else None
