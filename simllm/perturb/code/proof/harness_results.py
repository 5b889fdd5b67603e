"""The results that a harness writes, and the verdict on a variant that follows from them.

A harness is a program that runs inside the sandbox. For each case it calls all versions of a function on the
same inputs. A version is called a side: side 0 is the original, side 1 the variant, and higher sides are
wrong twins, which are variants with a deliberate mistake. The harness writes one line per event, with tabs
between the fields:

- `begin CASE`: the case begins.
- `broken CASE SIDE REASON`: the side does not compile.
- `left CASE REASON`: an input is left out because the original's behaviour on it cannot be compared.
- `outcome CASE SIDE INPUT TEXT`: the behaviour of a side on an input. After the first input on which a
  side differs from the original, the side is not called again.
- `side CASE SIDE`: the side is about to run. Only harnesses that run all sides in their own process write it.
- `died CASE SIDE`: the side ended its process.
- `error CASE REASON`: no side can be called.
- `end CASE`: all sides were run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from simllm.perturb.code.proof.proof_case import Counterexample, Proof, Task

ORIGINAL, VARIANT, FIRST_TWIN = 0, 1, 2  # the sides of a case


@dataclass
class CaseResults:
    """The results of one case: a function, its variant and the wrong twins.

    A side is one of these versions: 0 is the original, 1 the variant, and higher numbers are wrong twins.

    Attributes:
        broken: For each side that does not compile, the error message.
        died: The sides that end their process, although the original does not.
        outcomes: For each side, a description of its behaviour on each input, by the index of the input.
        left_out: The number of inputs that were left out, by reason.
        error: The reason why the functions cannot be called; empty if they can be.
        last_side: The side that was started last.
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
        """Return the index of the first input on which a side differs from the original, or None."""
        original = self.outcomes[ORIGINAL]
        return next((n for n, text in self.outcomes[side].items() if text != original[n]), None)


def read_results(content: bytes, results: Mapping[int, CaseResults]) -> set[int]:
    """Parse the lines that a harness has written, and add them to the results.

    Args:
        content: The content of the harness's result file.
        results: The results of each case, by its number. They are updated.

    Returns:
        The numbers of the cases that the harness began.
    """
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
    """Decide from the results of the harness whether a variant behaves like its original.

    Args:
        task: The function and its variant, with the inputs and wrong twins.
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
