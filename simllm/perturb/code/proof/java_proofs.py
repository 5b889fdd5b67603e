"""Comparison of Java functions with their variants (rewritten versions), by running both.

Several functions form a batch, which is compiled at once and runs in one process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from urllib.parse import unquote

from simllm.errors import InputError
from simllm.execution import Sandbox
from simllm.perturb.code.proof.harness_results import ORIGINAL, CaseResults
from simllm.perturb.code.proof.harness_runs import run_harness
from simllm.perturb.code.proof.java_compilation import JAVA_OPTIONS, compile_batch, is_broken
from simllm.perturb.code.proof.java_inputs import JavaSignature, draw_inputs, find_signature, unknown_types
from simllm.perturb.code.proof.java_task import JavaTask
from simllm.perturb.code.proof.mutants import make_mutants
from simllm.perturb.code.proof.proof_case import ProofCase, Task
from simllm.perturb.code.proof.proof_verdict import Proof, Prover, verdict

_PROCESSES = 64  # the Java virtual machine has some twenty threads
_RUN = ("java", *JAVA_OPTIONS, "-Xmx256m", "-cp", "classes", "ProofHarness")


def prepare_java(cases: Sequence[ProofCase], inputs: int, mutants: int, seed: int) -> Prover:
    """Prepare a batch of Java functions, so that they can be compared with their variants.

    A variant is a rewritten version of a function. The comparison compiles the function and its variant, and
    runs them on the same random inputs. It also runs mutants: variants with a deliberate mistake, which show
    whether the inputs reveal mistakes. The preparation generates the inputs and the mutants.

    Args:
        cases: The Java functions and their variants. A case is not run if its original code is a whole file
            instead of one function, or if this code has a syntax error.
        inputs: The largest number of inputs for each function.
        mutants: The largest number of mutants for each function.
        seed: The random seed.

    Returns:
        A function that makes the comparison in a given sandbox. It returns the outcome (`Proof`) for each
        case, in the given order.
    """
    proofs: dict[int, Proof] = {}
    batch: dict[int, JavaTask] = {}
    for number, case in enumerate(cases):
        try:
            signature = find_signature(case.original)
        except InputError as error:
            proofs[number] = Proof(case.id, "parsed", reason=f"does not compile: {error}")
            continue
        if signature is None:
            proofs[number] = Proof(case.id, "parsed", reason="is a file, not a function")
            continue
        batch[number] = _prepare(case, signature, inputs, mutants, seed)
    return partial(_prove, batch, proofs)


def _prove(batch: Mapping[int, JavaTask], known: Mapping[int, Proof], sandbox: Sandbox) -> list[Proof]:
    """Compile and run a batch of functions and their variants in the sandbox, and compare their behaviour.

    Args:
        batch: The functions to run, each with its variant (a rewritten version), by number.
        known: The outcomes for the functions that are not run, by number. The source of such a function has a
            syntax error or is a whole file. These outcomes are only added to the result.
        sandbox: The sandbox.

    Returns:
        The outcome of the comparison (`Proof`) for each function of `batch` and `known`, in the order of the
        numbers.
    """
    results = {number: CaseResults() for number in batch}
    classes = compile_batch(batch, sandbox, results)
    runnable = [number for number, java in batch.items() if java.inputs and not is_broken(results[number])]

    def files_for(numbers: list[int]) -> dict[str, bytes]:
        lines = (line for number in numbers for line in _lines(number, batch[number], results[number]))
        return {**classes, "cases.txt": "".join(f"{line}\n" for line in lines).encode()}

    run_harness(sandbox, _RUN, _PROCESSES, runnable, files_for, results)
    proofs = {**known, **{number: verdict(java.task, results[number]) for number, java in batch.items()}}
    return [proofs[number] for number in sorted(proofs)]


def _prepare(case: ProofCase, signature: JavaSignature, inputs: int, mutants: int, seed: int) -> JavaTask:
    """Prepare one Java function, so that it can be compared with its variant (a rewritten version).

    The comparison runs the function and its variant on random inputs. It also runs mutants: variants with a
    deliberate mistake, which show whether the inputs reveal mistakes. This function generates the inputs and
    the mutants.

    Args:
        case: The function and its variant.
        signature: The signature of the function.
        inputs: The largest number of inputs.
        mutants: The largest number of mutants.
        seed: The random seed.

    Returns:
        The function and its variant, with the inputs and mutants. If a parameter has an unsupported type,
        there are no inputs and no mutants. Then the attribute `task.obstacle` of the result names the type.
    """
    if unknown := unknown_types(signature.parameters):
        obstacle = f"needs types that are unknown: {', '.join(unknown)}"
        return JavaTask(Task(case, [], [], obstacle), signature, [])
    try:
        drawn = draw_inputs(signature.parameters, case.original, inputs, seed)
        task = Task(case, [_readable(values) for values, _ in drawn], make_mutants(case, mutants, seed))
    except (ValueError, RecursionError, MemoryError):
        return JavaTask(Task(case, [], [], "is too large to draw inputs"), signature, [])
    return JavaTask(task, signature, drawn)


def _readable(values: str) -> str:
    """Make the arguments of a function call readable: `String:a%20b` becomes `String:"a b"`.

    Args:
        values: The arguments of the call as text, such as `int:7 String:a%20b`. Strings are percent-encoded.
    """
    return re.sub(r"(?<=String:)\S*", lambda text: json.dumps(unquote(text[0]), ensure_ascii=False), values)


def _lines(number: int, java: JavaTask, results: CaseResults) -> Iterator[str]:
    """Yield the lines that describe one function in the input file of the harness.

    The harness is the program that calls all versions of a function.

    Args:
        number: The number of the function in its batch.
        java: The function with its variant (a rewritten version), inputs and mutants (incorrect variants).
        results: The results so far. They tell which versions of the function do not compile.
    """
    yield f"case\t{number}"
    case, signature = java.task.case, java.signature
    parameters = " ".join(kind.erased for kind in signature.parameters)
    for side in range(len(java.task.sides)):
        name = signature.name if side == ORIGINAL else case.names.get(signature.name, signature.name)
        entry = java.class_name if signature.is_constructor else name
        if side not in results.broken:
            yield f"side\t{side}\tp{number}_{side}\t{java.class_name}\t{entry}\t{parameters}"
    yield from (f"input\t{large:d}\t{values}" for values, large in java.inputs)
    yield "run"
