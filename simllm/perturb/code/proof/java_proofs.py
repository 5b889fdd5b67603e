"""Comparison of Java functions with their variants (rewritten versions), by running both.

Several functions form a batch, which is compiled at once and runs in one process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from urllib.parse import unquote

from simllm.errors import InputError
from simllm.execution import Limits, Sandbox
from simllm.perturb.code.proof.harness_results import ORIGINAL, VARIANT, CaseResults, verdict
from simllm.perturb.code.proof.harness_runs import run_harness
from simllm.perturb.code.proof.java_inputs import JavaSignature, draw_inputs, find_signature, unknown_types
from simllm.perturb.code.proof.mutants import make_mutants
from simllm.perturb.code.proof.proof_case import Proof, ProofCase, Prover, Task

_IMPORTS = "java.io java.math java.util java.util.function java.util.regex java.util.stream".split()
_HEADER = " ".join(f"import {package}.*;" for package in _IMPORTS)
_HARNESS = ("ProofHarness", "FunctionRunner", "ProofValues", "Describer")
_JAVA = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-XX:TieredStopAtLevel=1")
_COMPILE = ("javac", *(f"-J{option}" for option in _JAVA), "-J-Xmx768m", "-encoding", "UTF-8", "-proc:none")
_COMPILE += ("-nowarn", "-Xlint:none", "-Xmaxerrs", "1000000", "-g:none", "-d", "classes", "@sources.txt")
_RUN = ("java", *_JAVA, "-Xmx256m", "-cp", "classes", "ProofHarness")
_COMPILE_LIMITS = Limits(time=300, memory=1536, disk=256, processes=128)
_RUN_LIMITS = Limits(time=300, memory=1024, disk=256, processes=128)
_ERROR = re.compile(r"^p(\d+)_(\d+)/\w+\.java:\d+: error: (.*)$")
_UNKNOWN = re.compile(r"^ +symbol: +(class|variable|method) ([\w$]+)")


@dataclass(frozen=True)
class _JavaTask:
    """A Java function and its variant, prepared for the harness (the program that calls them).

    Attributes:
        task: The function and its variant, the mutants (deliberately incorrect variants), and the
            arguments of each input as text for display.
        signature: The signature of the original function.
        inputs: The same inputs in the form that the harness reads: a list of pairs, one for each input. The
            first item is a text with the arguments. The second item is True if an argument is a large
            integer.
    """

    task: Task
    signature: JavaSignature
    inputs: list[tuple[str, bool]]

    @property
    def class_name(self) -> str:
        """The name of the Java class that is written around the function, so that it can be compiled.

        The class around a constructor must have the constructor's name. The class around any other function
        is named `Case`.
        """
        return self.signature.name if self.signature.is_constructor else "Case"


def prepare_java(cases: Sequence[ProofCase], inputs: int, mutants: int, seed: int) -> Prover:
    """Prepare a batch of Java functions, so that they can be compared with their variants.

    A variant is a rewritten version of a function. The comparison runs both on random inputs. It also runs
    mutants: variants with a deliberate mistake, which show whether the inputs reveal mistakes. The
    preparation generates the inputs and the mutants.

    Args:
        cases: The functions and their variants.
        inputs: The largest number of inputs for each function.
        mutants: The largest number of mutants for each function.
        seed: The random seed.

    Returns:
        A function that makes the comparison in a given sandbox. It returns the outcome (`Proof`) for each
        case, in the given order.
    """
    proofs: dict[int, Proof] = {}
    batch: dict[int, _JavaTask] = {}
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


def _prove(batch: Mapping[int, _JavaTask], known: Mapping[int, Proof], sandbox: Sandbox) -> list[Proof]:
    """Compile and run the cases of a batch in the sandbox.

    Args:
        batch: The cases to run, by number. A case is a function with its variant.
        known: The outcomes of further cases, by number. These cases are not run, because their original has
            a syntax error or is a whole file. Their outcomes are added to the result without a change.
        sandbox: The sandbox.

    Returns:
        The outcome of the comparison (`Proof`) for each case of `batch` and `known`, in the order of the
        numbers.
    """
    results = {number: CaseResults() for number in batch}
    classes = _compile(batch, sandbox, results)
    runnable = [number for number, java in batch.items() if java.inputs and not _is_broken(results[number])]

    def files_for(numbers: list[int]) -> dict[str, bytes]:
        lines = (line for number in numbers for line in _lines(number, batch[number], results[number]))
        return {**classes, "cases.txt": "".join(f"{line}\n" for line in lines).encode()}

    run_harness(sandbox, _RUN, _RUN_LIMITS, runnable, files_for, results)
    proofs = {**known, **{number: verdict(java.task, results[number]) for number, java in batch.items()}}
    return [proofs[number] for number in sorted(proofs)]


def _prepare(case: ProofCase, signature: JavaSignature, inputs: int, mutants: int, seed: int) -> _JavaTask:
    """Prepare one Java function, so that it can be compared with its variant (a rewritten version).

    The comparison runs both on random inputs. It also runs mutants: variants with a deliberate mistake,
    which show whether the inputs reveal mistakes. The preparation generates the inputs and the mutants.

    Args:
        case: The function and its variant.
        signature: The signature of the function.
        inputs: The largest number of inputs.
        mutants: The largest number of mutants.
        seed: The random seed.

    Returns:
        The function and its variant, with the inputs and mutants. If a parameter has an unsupported type,
        there are no inputs and no mutants, and `task.obstacle` names the type.
    """
    if unknown := unknown_types(signature.parameters):
        obstacle = f"needs types that are unknown: {', '.join(unknown)}"
        return _JavaTask(Task(case, [], [], obstacle), signature, [])
    drawn = draw_inputs(signature.parameters, case.original, inputs, seed)
    task = Task(case, [_readable(values) for values, _ in drawn], make_mutants(case, mutants, seed))
    return _JavaTask(task, signature, drawn)


def _readable(values: str) -> str:
    """Decode the strings in arguments for display: `String:a%20b` becomes `String:"a b"`.

    Args:
        values: The arguments of one call as text, such as `int:7 String:a%20b`. Strings are percent-encoded.
    """
    return re.sub(r"(?<=String:)\S*", lambda text: json.dumps(unquote(text[0]), ensure_ascii=False), values)


def _file(number: int, side: int, java: _JavaTask) -> tuple[str, bytes]:
    """Build the Java file that contains one version of a function.

    Args:
        number: The number of the case.
        side: The index of the version in `java.task.sides`: 0 for the original, 1 for the variant, and higher
            numbers for mutants (deliberately incorrect variants).
        java: The case: the function with its variant and mutants.

    Returns:
        The relative path and the content of the file.
    """
    source = java.task.sides[side]
    if java.signature.overrides:  # the new class around it has no superclass whose method it could override
        source = source.replace("@Override", "", 1)
    name = java.class_name
    text = f"package p{number}_{side}; {_HEADER}\nclass {name} {{\n{java.task.case.around}\n{source}\n}}\n"
    return f"p{number}_{side}/{name}.java", text.encode("utf-8", "surrogatepass")


def _is_broken(results: CaseResults) -> bool:
    """Return whether the original or the variant does not compile."""
    return ORIGINAL in results.broken or VARIANT in results.broken


def _compile(
    batch: Mapping[int, _JavaTask], sandbox: Sandbox, results: Mapping[int, CaseResults]
) -> dict[str, bytes]:
    """Compile all versions of all functions in a batch: originals, variants and mutants.

    A case is a function with its variant and mutants (deliberately incorrect variants). A version that
    does not compile is recorded in the results, and the others are compiled without it. If an original or a
    variant does not compile, no version of this function is compiled.

    Args:
        batch: The cases, by number.
        sandbox: The sandbox in which the compiler runs.
        results: The results of each case, by number. The attribute `broken` of a case gets the error message
            of each version that does not compile.

    Returns:
        The content of each class file, by relative path.

    Raises:
        InputError: The compiler is too old.
    """
    while batch := {number: java for number, java in batch.items() if not _is_broken(results[number])}:
        sources = dict(
            _file(number, side, java)
            for number, java in batch.items()
            for side in range(len(java.task.sides))
            if side not in results[number].broken
        )
        sources |= {f"{name}.java": (files(__package__) / f"{name}.java").read_bytes() for name in _HARNESS}
        listing = {"sources.txt": "\n".join(sources).encode()}
        outcome = sandbox.run(_COMPILE, sources | listing, limits=_COMPILE_LIMITS, keep=["*.class"])
        if outcome.succeeded:
            return dict(outcome.files)
        log = outcome.stderr.decode(errors="replace")
        if "ProofHarness.java:" in log:
            raise InputError(f"proofs for Java need javac 17 or newer: {log.partition(chr(10))[0]}")
        errors = _errors(log)
        if not errors and len(batch) > 1:  # javac ended early, so it is not known at which case
            numbers = sorted(batch)
            halves = (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])
            compiled = (_compile({n: batch[n] for n in half}, sandbox, results) for half in halves)
            return {name: code for part in compiled for name, code in part.items()}
        if not errors:
            reason = f"javac exceeds its limit of {outcome.exceeded}" if outcome.exceeded else log.strip()
            errors = {(number, ORIGINAL): reason.partition("\n")[0] for number in batch}
        for (number, side), reason in errors.items():
            results[number].broken[side] = reason
    return {}


def _errors(log: str) -> dict[tuple[int, int], str]:
    """Parse the error messages of the compiler.

    Args:
        log: The output of javac.

    Returns:
        A short message for each function version with an error. The key is a pair: the number of the
        function, and the index of the version (0 for the original, 1 for the rewritten function, and higher
        numbers for deliberately incorrect rewrites).
    """
    first: dict[tuple[int, int], str] = {}
    unknown: dict[tuple[int, int], dict[str, list[str]]] = {}
    key = None
    for line in log.splitlines():
        if found := _ERROR.match(line):
            key = int(found[1]), int(found[2])
            first.setdefault(key, f"does not compile: {found[3]}")
        elif key and (found := _UNKNOWN.match(line)):
            kind = "types" if found[1] == "class" else "names"
            unknown.setdefault(key, {}).setdefault(kind, []).append(found[2])
    for key, names in unknown.items():
        kind = "types" if "types" in names else "names"
        first[key] = f"needs {kind} that are unknown: {', '.join(dict.fromkeys(names[kind]))}"
    return first


def _lines(number: int, java: _JavaTask, results: CaseResults) -> Iterator[str]:
    """Yield the lines that describe one case in the input file of the harness.

    The harness is the program that calls all versions of a function.

    Args:
        number: The number of the case.
        java: The case: a function with its variant, inputs and mutants.
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
