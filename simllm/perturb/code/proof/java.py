"""Comparison of Java functions with their variants: one compilation and one harness for a batch."""

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
from simllm.perturb.code.proof.harness import ORIGINAL, VARIANT, CaseResults, run_harness
from simllm.perturb.code.proof.java_inputs import JavaSignature, draw_inputs, find_signature, unknown_types
from simllm.perturb.code.proof.mutants import make_mutants
from simllm.perturb.code.proof.verdicts import Proof, ProofCase, Prover, Task, verdict


@dataclass(frozen=True)
class JavaTask:
    """A Java case with its inputs.

    Attributes:
        signature: The signature of the original function.
        inputs: For each input, its arguments for `ProofValues.java`, such as "int:7 null", and whether one of
            them is a large integer.
    """

    task: Task
    signature: JavaSignature
    inputs: list[tuple[str, bool]]

    @property
    def class_name(self) -> str:
        """The name of the class that is written around the function."""
        # The class around a constructor must have its name.
        return self.signature.name if self.signature.is_constructor else "Case"


_IMPORTS = "java.io java.math java.util java.util.function java.util.regex java.util.stream".split()
_HEADER = " ".join(f"import {package}.*;" for package in _IMPORTS)
_HARNESS = ("ProofHarness", "FunctionRunner", "ProofValues", "OutcomeDescriber")
JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-XX:TieredStopAtLevel=1")
_COMPILE = ("javac", *(f"-J{option}" for option in JAVA_OPTIONS), "-J-Xmx768m", "-encoding", "UTF-8")
_COMPILE += ("-proc:none", "-nowarn", "-Xlint:none", "-Xmaxerrs", "1000000", "-g:none")
# Without lines of the source, which could look like messages about other functions.
_COMPILE += ("-XDdiags.formatterOptions=-source", "-d", "classes", "@sources.txt")
_COMPILE_LIMITS = Limits(time=300, memory=1536, disk=256)
_ERROR = re.compile(r"^p(\d+)_(\d+)/\w+\.java:\d+: error: (.*)$")
_UNKNOWN = re.compile(r"^ +symbol: +(class|variable|method) ([\w$]+)")


def compile_batch(
    batch: Mapping[int, JavaTask], sandbox: Sandbox, results: Mapping[int, CaseResults]
) -> dict[str, bytes]:
    """Compile all sides of a batch; return the class files by relative path.

    A side that does not compile is noted as `broken` in its results and left out; a case whose original or
    variant is broken is left out whole.

    Raises:
        InputError: The compiler is too old.
    """
    # Each round leaves out what does not compile, until the rest does.
    while batch := {number: java for number, java in batch.items() if not is_broken(results[number])}:
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
        # The harness itself compiles with every javac that knows its syntax.
        if "ProofHarness.java:" in log:
            raise InputError(f"proofs for Java need javac 17 or newer: {log.partition(chr(10))[0]}")
        errors = {key: reason for key, reason in _errors(log).items() if key[0] in batch}
        if not errors and len(batch) > 1:  # javac ended early, so it is not known at which case
            numbers = sorted(batch)
            halves = (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])
            compiled = (compile_batch({n: batch[n] for n in half}, sandbox, results) for half in halves)
            return {name: code for part in compiled for name, code in part.items()}
        # The error belongs to the only case that is left.
        if not errors:
            reason = f"javac exceeds its limit of {outcome.exceeded}" if outcome.exceeded else log.strip()
            errors = {(number, ORIGINAL): reason.partition("\n")[0] for number in batch}
        for (number, side), reason in errors.items():
            results[number].broken[side] = reason
    return {}


def is_broken(results: CaseResults) -> bool:
    """Return whether the original or the variant does not compile."""
    return ORIGINAL in results.broken or VARIANT in results.broken


def _file(number: int, side: int, java: JavaTask) -> tuple[str, bytes]:
    """Return the path and the content of the Java file of one side."""
    source = java.task.sides[side]
    if java.signature.overrides:  # the new class around it has no superclass whose method it could override
        source = source.replace("@Override", "", 1)
    name = java.class_name
    text = f"package p{number}_{side}; {_HEADER}\nclass {name} {{\n{java.task.case.around}\n{source}\n}}\n"
    return f"p{number}_{side}/{name}.java", text.encode("utf-8", "surrogatepass")


def _errors(log: str) -> dict[tuple[int, int], str]:
    """Return the first error of each side in the output of javac, by case and side."""
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


_PROCESSES = 64  # the Java virtual machine has some twenty threads
_LONGEST_NAME = 255 - len(".class")  # bytes, of Linux
_RUN = ("java", *JAVA_OPTIONS, "-Xmx256m", "-cp", "classes", "ProofHarness")


def prepare_java(cases: Sequence[ProofCase], inputs: int, mutants: int, seed: int) -> Prover:
    """Draw the inputs and mutants of a batch of Java functions; the result runs the batch in a sandbox.

    A whole file, or a function with a syntax error, is not run.
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
        if len(signature.name.encode()) > _LONGEST_NAME:  # a constructor's class is a file of this name
            proofs[number] = Proof(case.id, "parsed", reason="has a name that is too long")
            continue
        batch[number] = _prepare(case, signature, inputs, mutants, seed)
    return partial(_prove, batch, proofs)


def _prove(batch: Mapping[int, JavaTask], known: Mapping[int, Proof], sandbox: Sandbox) -> list[Proof]:
    """Compile and run a batch, and return its proofs and the `known` ones, in the order of their numbers."""
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
    """Draw the inputs and mutants of one function; there are none if it has a parameter of unknown type."""
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
    """Make the arguments of an input readable: `String:a%20b` becomes `String:"a b"`."""
    # Strings are percent-encoded, because spaces separate the values.
    return re.sub(r"(?<=String:)\S*", lambda text: json.dumps(unquote(text[0]), ensure_ascii=False), values)


def _lines(number: int, java: JavaTask, results: CaseResults) -> Iterator[str]:
    """Yield the lines that describe a case in the input of the harness."""
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
