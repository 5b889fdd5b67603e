"""The results of a harness, which runs functions and their variants in the sandbox, and the verdicts.

A harness writes lines with tabs between the fields: `begin CASE`; `broken CASE SIDE REASON` for a side that
does not compile; for the original, `outcome CASE 0 INPUT TEXT` for each input that counts, and
`left CASE REASON` for each other; for each variant, `outcome CASE SIDE INPUT TEXT` up to the first that
differs; `died CASE SIDE` if a variant ends its process; `error CASE REASON` if no side can be called;
`end CASE`. A harness that the functions can end writes `side CASE SIDE` before it runs a side.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from simllm.perturb.code.proof.proof_case import Counterexample, Proof, Task

ORIGINAL, VARIANT, FIRST_TWIN = 0, 1, 2  # the sides of a case


@dataclass
class CaseResults:
    """The results of one case.

    Attributes:
        broken: What is wrong with the sides that do not compile.
        died: The sides that end their process, although the original does not.
        outcomes: For each side, the outcome for each input.
        left_out: How often an input was left out for a reason.
        error: Why the functions cannot be called; empty if they can.
        last_side: The side that was begun last.
        ended: Whether all sides were run.
    """

    broken: dict[int, str] = field(default_factory=dict)
    died: set[int] = field(default_factory=set)
    outcomes: defaultdict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    left_out: Counter[str] = field(default_factory=Counter)
    error: str = ""
    last_side: int = ORIGINAL
    ended: bool = False

    def differing_input(self, side: int) -> int | None:
        """Return the first input on which a side differs from the original."""
        original = self.outcomes[ORIGINAL]
        return next((n for n, text in self.outcomes[side].items() if text != original[n]), None)


def read_results(content: bytes, results: Mapping[int, CaseResults]) -> set[int]:
    """Add what a harness has written to the results of the cases, by number; return the cases that begun."""
    begun = set()
    for line in content.decode(errors="replace").split("\n")[:-1]:  # the last line may be half written
        kind, number, *rest = line.split("\t")
        case = results[int(number)]
        match kind, rest:
            case "begin", []:
                begun.add(int(number))
            case "broken", [side, reason]:
                case.broken[int(side)] = reason
            case "outcome", [side, place, text]:
                case.outcomes[int(side)][int(place)] = text
            case "left", [reason]:
                case.left_out[reason] += 1
            case "side", [side]:
                case.last_side = int(side)
            case "died", [side]:
                case.died.add(int(side))
            case "error", [reason]:
                case.error = reason
            case "end", []:
                case.ended = True
    return begun


def verdict(task: Task, results: CaseResults) -> Proof:
    """Return the verdict on a variant.

    Args:
        task: The case, its inputs and wrong twins.
        results: The results of the harness.
    """
    case_id = task.case.id
    if reason := results.broken.get(ORIGINAL):
        return Proof(case_id, "parsed", reason=reason)
    if reason := results.broken.get(VARIANT):
        return Proof(case_id, "refuted", reason=f"the variant {reason}")
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
        task = replace(task, twins=task.twins[: results.last_side - VARIANT])  # the rest was not run
    if VARIANT in results.died:
        return Proof(case_id, "refuted", agreed, reason="the variant ends its process")
    if not agreed:
        common = [reason for reason, _ in results.left_out.most_common(1)]
        return Proof(case_id, "compiled", reason=results.error or task.obstacle or common[0])
    twins = [side for side in range(FIRST_TWIN, FIRST_TWIN + len(task.twins)) if side not in results.broken]
    found = [side for side in twins if side in results.died or results.differing_input(side) is not None]
    return Proof(case_id, "proven", agreed, len(twins), len(found))
