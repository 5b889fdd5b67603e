"""Runs of a harness in the sandbox, and the results that are read from its output.

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
    """The results of running all sides of a case.

    Attributes:
        broken: For each side that does not compile, the error message.
        died: The sides that end their process; for a variant or mutant, although the original does not.
        outcomes: For each side, a dict from the index of an input to a description of the behaviour on it.
        left_out: For each reason to leave out an input, the number of inputs that were left out.
        error: The reason why a compiled Java side cannot be loaded; empty if all can.
        last_side: The side that was started last; always 0 in Python.
        ended: Whether the harness finished the case; False if, for example, the function exits the process.
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
        return next((n for n, text in self.outcomes[side].items() if text != original.get(n)), None)


def read_results(content: bytes, key: str, results: Mapping[int, CaseResults]) -> set[int]:
    """Add the lines of a harness to the results of their cases; return the cases that began.

    Lines without the key, and lines that no harness writes, come from functions and are ignored.
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
    """Add one line; a damaged line is a ValueError, and a case of another run a KeyError."""
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
    """Run cases in the sandbox and update their results, until each case has ended or was run alone.

    `argv` starts the harness; `files_for` returns the files that it needs for some cases.

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
        # Trying again would never end if no case begins.
        if not begun:
            message = outcome.stderr.decode(errors="replace").strip() or f"exit status {outcome.status}"
            raise SandboxError(f"{argv[0]} does not run the functions: {message}")
        # An interrupted case is run again alone, because earlier cases may have used up the time.
        unfinished = [number for number in waiting if number in begun and not results[number].ended]
        for number in unfinished if len(waiting) > 1 else []:
            results[number] = CaseResults()
            runs.insert(0, [number])
        if rest := [number for number in waiting if number not in begun]:
            runs.append(rest)
