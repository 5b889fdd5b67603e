"""A Java function and its variant (a rewritten version), with the arguments with which both are called."""

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
    """A Java function and its variant (a rewritten version), with the inputs on which both are run.

    Attributes:
        task: The function, its variant and the mutants (deliberately incorrect variants). It also has the
            inputs as text for display.
        signature: The signature of the original function.
        inputs: For each input, a text and a bool. The text has the arguments, such as "int:7 null", for the
            Java program that calls the functions. The bool is True if an argument is a large integer.
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
    """Compile all versions of a batch of Java functions; leave out versions that do not compile.

    A function has several versions: the original, the variant (a rewritten version) and the mutants (variants
    with a deliberate mistake). If a mutant does not compile, the other versions are compiled without it. If
    an original or a variant does not compile, no version of this function is compiled.

    Args:
        batch: The functions with their versions, by number.
        sandbox: The sandbox in which the compiler runs.
        results: The results of each function, by number. If a version does not compile, the error message is
            stored in the attribute `broken` of the function's results.

    Returns:
        The content of each class file, by relative path.

    Raises:
        InputError: The compiler is too old.
    """
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
        if "ProofHarness.java:" in log:
            raise InputError(f"proofs for Java need javac 17 or newer: {log.partition(chr(10))[0]}")
        errors = {key: reason for key, reason in _errors(log).items() if key[0] in batch}
        if not errors and len(batch) > 1:  # javac ended early, so it is not known at which case
            numbers = sorted(batch)
            halves = (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])
            compiled = (compile_batch({n: batch[n] for n in half}, sandbox, results) for half in halves)
            return {name: code for part in compiled for name, code in part.items()}
        if not errors:
            reason = f"javac exceeds its limit of {outcome.exceeded}" if outcome.exceeded else log.strip()
            errors = {(number, ORIGINAL): reason.partition("\n")[0] for number in batch}
        for (number, side), reason in errors.items():
            results[number].broken[side] = reason
    return {}


def is_broken(results: CaseResults) -> bool:
    """Return whether a function or its variant (the rewritten function) does not compile."""
    return ORIGINAL in results.broken or VARIANT in results.broken


def _file(number: int, side: int, java: JavaTask) -> tuple[str, bytes]:
    """Build the Java file that contains one version of a function.

    Args:
        number: The number of the function in its batch.
        side: The index of the version in `java.task.sides`: 0 for the original, 1 for the variant, and higher
            numbers for mutants (deliberately incorrect variants).
        java: The function with its variant (a rewritten version) and mutants.

    Returns:
        The relative path and the content of the file.
    """
    source = java.task.sides[side]
    if java.signature.overrides:  # the new class around it has no superclass whose method it could override
        source = source.replace("@Override", "", 1)
    name = java.class_name
    text = f"package p{number}_{side}; {_HEADER}\nclass {name} {{\n{java.task.case.around}\n{source}\n}}\n"
    return f"p{number}_{side}/{name}.java", text.encode("utf-8", "surrogatepass")


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


_PROCESSES = 64  # the Java virtual machine has some twenty threads
_LONGEST_NAME = 255 - len(".class")  # bytes, of Linux
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
        if len(signature.name.encode()) > _LONGEST_NAME:  # a constructor's class is a file of this name
            proofs[number] = Proof(case.id, "parsed", reason="has a name that is too long")
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
