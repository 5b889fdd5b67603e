"""Comparison of Python functions with their variants; one harness runs a batch of cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from simllm.execution import Sandbox
from simllm.perturb.code.proof.harness import CaseResults, run_harness
from simllm.perturb.code.proof.mutants import make_mutants
from simllm.perturb.code.proof.python_inputs import Input, PythonSignature, draw_inputs, find_signature
from simllm.perturb.code.proof.verdicts import Proof, ProofCase, Prover, Task, verdict

_HARNESS = "python_harness.py"
_TOO_LARGE = "is nested too deeply, or has a number of too many digits"
# The harness and one function at a time; more would only help functions that fork without end.
_PROCESSES = 16


def prepare_python(cases: Sequence[ProofCase], inputs: int, mutants: int, seed: int) -> Prover:
    """Draw the inputs and mutants of a batch of Python functions; the result runs the batch in a sandbox."""
    tasks: list[Task] = []
    descriptions: list[dict[str, Any]] = []  # for the harness
    for case in cases:
        signature, obstacle = _signature(case.original)
        drawn, mistakes = list[Input](), list[str]()
        try:
            if signature and not obstacle:
                drawn = draw_inputs(signature, case.original, inputs, seed)
                mistakes = make_mutants(case, mutants, seed) if drawn else []
        except (ValueError, RecursionError, MemoryError):
            drawn, obstacle = [], _TOO_LARGE
        task = Task(case, [_readable(given) for given in drawn], mistakes, obstacle)
        name = signature.name if signature else ""
        tasks.append(task)
        descriptions.append(_description(task, name, drawn, inputs))
    return partial(_prove, tasks, descriptions)


def _prove(tasks: list[Task], descriptions: list[dict[str, Any]], sandbox: Sandbox) -> list[Proof]:
    """Run a batch with its descriptions for the harness, and return the proofs in order."""
    results = {number: CaseResults() for number in range(len(tasks))}
    harness = (files(__package__) / _HARNESS).read_bytes()

    def files_for(numbers: list[int]) -> dict[str, bytes]:
        described = [{"number": number, **descriptions[number]} for number in numbers]
        return {_HARNESS: harness, "cases.json": json.dumps(described).encode()}

    command = ("python3", _HARNESS, "contained" if sandbox.contained else "open")
    run_harness(sandbox, command, _PROCESSES, range(len(tasks)), files_for, results)
    return [verdict(task, results[number]) for number, task in enumerate(tasks)]


def _signature(source: str) -> tuple[PythonSignature | None, str]:
    """Return the signature, and the reason (or "") why the function cannot be called.

    The signature is None if the source does not compile or is not a single function.
    """
    try:
        signature = find_signature(source)
    except SyntaxError:
        return None, "does not compile"  # the Python of the sandbox says why
    except (ValueError, RecursionError, MemoryError):
        return None, _TOO_LARGE
    if signature is None:
        return None, "is a file, not a function"
    return signature, "is a method" if signature.is_method else ""


def _description(task: Task, name: str, inputs: list[Input], wanted: int) -> dict[str, Any]:
    """Describe a case for the harness, all but its `number`; `python_harness` explains the keys."""
    new_name = task.case.names.get(name, name)
    # A rewrite may rename the function itself; mutants are made of the variant.
    entries = [name, *[new_name] * (1 + len(task.mutants))]
    sides = [{"source": text, "entry": entry} for text, entry in zip(task.sides, entries, strict=True)]
    return {"around": task.case.around, "sides": sides, "wanted": wanted, "inputs": inputs}


def _readable(given: Input) -> str:
    """Format an input such as `1, x=2`."""
    return ", ".join([*given[0], *(f"{name}={text}" for name, text in given[1].items())])
