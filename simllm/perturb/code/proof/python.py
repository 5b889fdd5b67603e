"""Comparison of Python functions with their variants (rewritten versions), by running both.

One program, the harness, runs a batch of several functions. It starts a separate process for each version of
a function.
"""

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
    """Prepare a batch of Python functions, so that they can be compared with their variants.

    A variant is a rewritten version of a function. The comparison runs the function and its variant on the
    same random inputs. It also runs mutants: variants with a deliberate mistake, which show whether the
    inputs reveal mistakes. The preparation generates the inputs and the mutants.

    Args:
        cases: The functions and their variants.
        inputs: The largest number of inputs on which a function and its variant are compared.
        mutants: The largest number of mutants for each function.
        seed: The random seed.

    Returns:
        A function that makes the comparison in a given sandbox. It returns the outcome (`Proof`) for each
        case, in the given order.
    """
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
    """Run a batch of functions and their variants in the sandbox, and compare their behaviour.

    Args:
        tasks: The functions and their variants, with inputs and mutants (variants with a deliberate mistake,
            which show whether the inputs reveal mistakes).
        descriptions: For each task, the result of `_description`: a JSON object that tells the harness what
            to run. The harness is the program that calls the functions.
        sandbox: The sandbox.

    Returns:
        The outcome of the comparison (`Proof`) for each task, in the order of the tasks.
    """
    results = {number: CaseResults() for number in range(len(tasks))}
    harness = (files(__package__) / _HARNESS).read_bytes()

    def files_for(numbers: list[int]) -> dict[str, bytes]:
        described = [{"number": number, **descriptions[number]} for number in numbers]
        return {_HARNESS: harness, "cases.json": json.dumps(described).encode()}

    command = ("python3", _HARNESS, "contained" if sandbox.contained else "open")
    run_harness(sandbox, command, _PROCESSES, range(len(tasks)), files_for, results)
    return [verdict(task, results[number]) for number, task in enumerate(tasks)]


def _signature(source: str) -> tuple[PythonSignature | None, str]:
    """Find the signature of the function in a source, and decide whether the function can be called.

    Returns:
        The signature, and the reason why the function cannot be called. The signature is None if the source
        does not compile or is not a single function. The reason is empty if the function can be called.
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
    """Describe a function and its variant in JSON, for the program that calls both (the harness).

    The module `python_harness` explains the keys. The key `number` is missing; the caller adds it.

    Args:
        task: The function and its variant (a rewritten version), with the mutants (variants with a deliberate
            mistake).
        name: The name of the original function.
        inputs: The inputs that the harness may try.
        wanted: The number of usable inputs after which the harness stops trying inputs.
    """
    new_name = task.case.names.get(name, name)
    entries = [name, *[new_name] * (1 + len(task.mutants))]
    sides = [{"source": text, "entry": entry} for text, entry in zip(task.sides, entries, strict=True)]
    return {"around": task.case.around, "sides": sides, "wanted": wanted, "inputs": inputs}


def _readable(given: Input) -> str:
    """Format the generated arguments for one call of a function as text, such as `1, x=2`."""
    return ", ".join([*given[0], *(f"{name}={text}" for name, text in given[1].items())])
