"""The results that a harness writes, and the results of each case that are read from them.

A harness is a program inside the sandbox that calls functions. One harness is for Java, and one for Python.
A case is one function in several versions, which are named sides. Side 0 is the original. Side 1 is the
variant, a rewritten version. Higher sides are mutants: variants with a deliberate mistake. The harness
calls all sides of a case on the same inputs.

A harness writes one line per event to standard output, with tabs between the fields. The first field is a
key that is drawn for the run, so that a line which a function writes is not taken for a result. CASE, SIDE
and INPUT are numbers. Both harnesses write these lines:

- `begin CASE`: the case begins.
- `left CASE REASON`: an input is left out because the original's behaviour on it cannot be compared.
- `outcome CASE SIDE INPUT TEXT`: the behaviour of a side on an input. After the first input on which a
  side differs from the original, the side is not called again.
- `end CASE`: the case ends.

Only the harness for Java, which runs all sides in its own process, writes these lines:

- `side CASE SIDE`: the side is about to run.
- `error CASE REASON`: a side cannot be loaded; this side and the later ones are not called.

Only the harness for Python writes these lines:

- `broken CASE SIDE REASON`: the side does not compile.
- `died CASE SIDE`: the side ended its process, or took too long without ending a call.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from simllm.execution import Limits, Sandbox, SandboxError

ORIGINAL, VARIANT, FIRST_MUTANT = 0, 1, 2  # the sides of a case


@dataclass
class CaseResults:
    """The results of running all versions of one function.

    The versions are the original, the variant (a rewritten version) and the mutants (variants with a
    deliberate mistake). A side is the number of a version: 0 for the original, 1 for the variant, 2 and
    higher for the mutants.

    Attributes:
        broken: For each side that does not compile, the error message.
        died: The sides that end their process; for a variant or mutant, although the original does not.
        outcomes: For each side, a dict from the index of an input to a description of the behaviour on it.
        left_out: For each reason to leave out an input, the number of inputs that were left out.
        error: The reason why the class of a side cannot be loaded after compilation; empty if all classes
            can be loaded. Only Java functions have this error.
        last_side: The side that was started last. For Python functions, it is always 0.
        ended: Whether the harness (the program that calls all versions) finished this function; False if,
            for example, the function exits the process.
    """

    broken: dict[int, str] = field(default_factory=dict)
    died: set[int] = field(default_factory=set)
    outcomes: defaultdict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    left_out: Counter[str] = field(default_factory=Counter)
    error: str = ""
    last_side: int = ORIGINAL
    ended: bool = False

    def differing_input(self, side: int) -> int | None:
        """Return the index of the first input on which a version of the function differs from the original.

        Args:
            side: The number of the version: 1 for the variant (a rewritten version), and 2 or higher for a
                mutant (a variant with a deliberate mistake).

        Returns:
            The index; None if the version behaves like the original on all inputs.
        """
        original = self.outcomes[ORIGINAL]
        return next((n for n, text in self.outcomes[side].items() if text != original.get(n)), None)


def read_results(content: bytes, key: str, results: Mapping[int, CaseResults]) -> set[int]:
    """Read the results of running functions and their rewritten versions from the output of a harness.

    Lines without the key, and lines that no harness writes, are ignored: they come from functions.

    Args:
        content: The output of the harness. An incomplete last line is ignored.
        key: The word with which each line of the harness begins.
        results: A dict from the number of each case of the run to the object to which the results of the case
            are added.

    Returns:
        The numbers of the cases that the harness began to run.
    """
    begun = set()
    for line in content.decode(errors="replace").split("\n")[:-1]:  # the last line may be half written
        first, *fields = line.split("\t")
        if first != key:
            continue
        with contextlib.suppress(ValueError, KeyError):
            _add(fields, results)
            begun.add(int(fields[1]))
    return begun


def _add(fields: Sequence[str], results: Mapping[int, CaseResults]) -> None:
    """Add one line to the results of its case.

    Raises:
        ValueError: The line is damaged.
        KeyError: The case does not belong to the run.
    """
    kind, number, *rest = fields
    case = results[int(number)]
    match kind, rest:
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


# An interrupted case is run again, so that the limit of time need not suffice for all cases.
_LIMITS = Limits(time=120, memory=1024, output=1 << 28, disk=256)
_KEY_FILE = "key.txt"


def run_harness(
    sandbox: Sandbox,
    argv: Sequence[str],
    processes: int,
    cases: Collection[int],
    files_for: Callable[[list[int]], Mapping[str, bytes]],
    results: MutableMapping[int, CaseResults],
) -> None:
    """Run functions and their rewritten variants in the sandbox, and collect the results.

    A case is a function with its rewritten variant. The harness is a program that runs the cases one after
    the other. It can end too early, for example because a case exits the process. The harness is then started
    again for the cases that it had not begun. Later, the interrupted case is run again, but alone, because
    earlier cases may be to blame: they may have used up the time. A case that was already alone is not run
    again.

    Args:
        sandbox: The sandbox in which the harness runs.
        argv: The words of the command that starts the harness.
        processes: The largest number of processes and threads.
        cases: The numbers of the cases.
        files_for: A function that takes the numbers of some cases. It returns the files that the harness
            needs for these cases: the content of each file, by file name.
        results: The results of each case, by the number of the case. They are updated.

    Raises:
        SandboxError: The harness does not start.
    """
    limits = replace(_LIMITS, processes=processes)
    runs = [sorted(cases)] if cases else []
    while runs:
        waiting = runs.pop()
        key = secrets.token_hex(16)
        files = {**files_for(waiting), _KEY_FILE: key.encode()}
        outcome = sandbox.run(argv, files, limits=limits)
        begun = read_results(outcome.stdout, key, {number: results[number] for number in waiting})
        if not begun:
            message = outcome.stderr.decode(errors="replace").strip() or f"exit status {outcome.status}"
            raise SandboxError(f"{argv[0]} does not run the functions: {message}")
        unfinished = [number for number in waiting if number in begun and not results[number].ended]
        for number in unfinished if len(waiting) > 1 else []:
            results[number] = CaseResults()
            runs.insert(0, [number])
        if rest := [number for number in waiting if number not in begun]:
            runs.append(rest)
