"""The results of a harness, which runs functions and their variants in the sandbox, and the verdicts.

A harness writes lines with tabs between the fields: `begin CASE`; for the original, `outcome CASE 0 INPUT TEXT`
for each input that counts, and `left CASE REASON` for the others; `outcome CASE SIDE INPUT TEXT` for each
variant, up to the first that differs; `error CASE REASON` if the functions cannot be called; `end CASE`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from simllm.perturb.code.proof.proof_case import Counterexample, Proof, Task

ORIGINAL, VARIANT, FIRST_TWIN = 0, 1, 2  # the sides of a case


@dataclass
class CaseResults:
    """The results of one case.

    Attributes:
        outcomes: For each side, the outcome for each input.
        left_out: How often an input was left out for a reason.
        error: Why the functions cannot be called; empty if they can.
        ended: Whether all sides were run.
    """

    outcomes: defaultdict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    left_out: Counter[str] = field(default_factory=Counter)
    error: str = ""
    ended: bool = False

    def differing_input(self, side: int) -> int | None:
        """Return the first input on which a side differs from the original."""
        original = self.outcomes[ORIGINAL]
        return next((n for n, text in self.outcomes[side].items() if text != original[n]), None)


def read_results(content: bytes) -> dict[int, CaseResults]:
    """Return the results of the cases by number, in the order in which they were begun."""
    results: dict[int, CaseResults] = {}
    for line in content.decode(errors="replace").split("\n")[:-1]:  # the last line may be half written
        kind, number, *rest = line.split("\t")
        case = results.setdefault(int(number), CaseResults())
        if kind == "outcome":
            case.outcomes[int(rest[0])][int(rest[1])] = rest[2]
        elif kind == "left":
            case.left_out[rest[0]] += 1
        elif kind == "error":
            case.error = rest[0]
        elif kind == "end":
            case.ended = True
    return results


def verdict(task: Task, results: CaseResults, twins: int, describe: Callable[[str], str]) -> Proof:
    """Return the verdict on a variant that compiles, as its original does.

    Args:
        task: The case, and its inputs.
        results: The results of the harness.
        twins: The number of wrong twins that were run.
        describe: Turns the text of an input into one for readers.
    """
    case_id = task.case.id
    differing = results.differing_input(VARIANT)
    if differing is not None:
        counterexample = Counterexample(
            describe(task.inputs[differing][0]),
            results.outcomes[ORIGINAL][differing],
            results.outcomes[VARIANT][differing],
        )
        agreeing = len(results.outcomes[VARIANT]) - 1
        return Proof(case_id, "refuted", agreeing, reason="the outcomes differ", counterexample=counterexample)
    if results.error or not results.ended:
        return Proof(case_id, "compiled", reason=results.error or "the call ended its process")
    if not results.outcomes[ORIGINAL]:
        reasons = [reason for reason, _ in results.left_out.most_common(1)]
        return Proof(case_id, "compiled", reason=f"no input counts: {(reasons or ['there is none'])[0]}")
    refuted = sum(results.differing_input(FIRST_TWIN + n) is not None for n in range(twins))
    return Proof(case_id, "proven", len(results.outcomes[VARIANT]), twins, refuted)
