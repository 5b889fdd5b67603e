"""Runs of functions and their rewritten variants in the sandbox, to compare how they behave.

The program that calls both on the same inputs is named the harness. It writes down their behaviour.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace

from simllm.execution import Limits, Sandbox, SandboxError
from simllm.perturb.code.proof.harness_results import CaseResults, read_results

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
