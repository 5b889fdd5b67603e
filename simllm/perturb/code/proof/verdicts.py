"""Classes for a function with its variant (a rewritten version), and for the inputs on which both are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from simllm.execution import Sandbox
from simllm.perturb.code.proof.harness import FIRST_MUTANT, ORIGINAL, VARIANT, CaseResults


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


VERDICTS = ("proven", "unproven", "tests passed", "compiled", "parsed", "refuted")


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
            "proven": both versions compile, and behave the same on all inputs (at least one), and the inputs
            reveal at least one mutant, so that they could have revealed a mistake.
            "unproven": both versions behave the same on all inputs, but the inputs reveal no mutant.
            "tests passed": a command of the user, such as a test suite, succeeds on both versions.
            "compiled": both versions compile, but there is no input on which they could be compared.
            "parsed": nothing is known except that the code can be parsed. The original cannot be compiled on
                its own, for example because it needs other code.
            "refuted": the variant does not compile, or behaves differently.
        inputs: The number of inputs on which the original and the variant behave the same.
        mutants: The number of mutants that compile.
        killed_mutants: The number of mutants that behave differently from the original on at least one input.
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


Prover = Callable[[Sandbox], list[Proof]]  # runs a prepared batch, and returns its proofs in order


def verdict(task: Task, results: CaseResults) -> Proof:
    """Decide whether a rewritten function behaves like the original, given the results of running both.

    The rewritten function is called the variant. Mutants are variants with a deliberate mistake. They are
    run, too, and show whether the inputs can reveal a mistake.

    Args:
        task: The original, the variant and the mutants, with the inputs.
        results: The results of running the original, the variant and the mutants.

    Returns:
        The outcome of the comparison (`Proof`): the verdict, the reason, the number of inputs, and the number
        of mutants whose mistake the inputs reveal.
    """
    case_id = task.case.id
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
        if results.last_side == ORIGINAL:
            return Proof(case_id, "compiled", reason="the function ends its process")
        results.died.add(results.last_side)
        task = replace(task, mutants=task.mutants[: results.last_side - VARIANT])  # the rest was not run
    if VARIANT in results.died:
        return Proof(case_id, "refuted", agreed, reason="the variant ends its process")
    if not agreed:
        reasons = results.left_out.most_common(1) or [("no input was run", 0)]
        return Proof(case_id, "compiled", reason=results.error or task.obstacle or reasons[0][0])
    sides = range(FIRST_MUTANT, FIRST_MUTANT + len(task.mutants))
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
    """Counts over many proofs, such as the number of proofs with each verdict.

    A proof is the outcome of running a function and its variant (a rewritten version), and comparing them.

    Attributes:
        verdicts: The number of proofs with each verdict, such as "proven" or "refuted".
        reasons: The number of proofs with each reason, for the verdicts "unproven", "compiled" and "parsed".
        inputs: The total number of inputs on which functions and variants behaved the same, counted only in
            proofs with the verdict "proven" or "unproven".
        mutants: The total number of mutants (variants with a deliberate mistake) that were run.
        killed_mutants: The total number of mutants whose mistake the inputs revealed.
    """

    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    reasons: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    mutants: int = 0
    killed_mutants: int = 0

    def add(self, proof: Proof) -> None:
        """Update the counts with one proof.

        A proof is the outcome of running a function and its variant (a rewritten version), and comparing
        them.
        """
        self.verdicts[proof.verdict] += 1
        if proof.verdict in ("unproven", "compiled", "parsed"):
            self.reasons[proof.reason] += 1
        if proof.verdict in ("proven", "unproven"):
            self.inputs += proof.inputs
        self.mutants += proof.mutants
        self.killed_mutants += proof.killed_mutants

    @property
    def power(self) -> float | None:
        """The share of mutants (variants with a deliberate mistake) that the test inputs reveal.

        An input reveals a mutant if the original and the mutant behave differently on this input. The share
        is None if there are no mutants.
        """
        return self.killed_mutants / self.mutants if self.mutants else None
