"""The verdict on a variant (a rewritten function): whether it behaves like the original when both are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from simllm.execution import Sandbox
from simllm.perturb.code.proof.harness_results import FIRST_MUTANT, ORIGINAL, VARIANT, CaseResults
from simllm.perturb.code.proof.proof_case import Task

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
