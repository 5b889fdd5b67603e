"""Compilation of Java functions and their variants (rewritten versions), many at once, with javac."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

from simllm.errors import InputError
from simllm.execution import Limits, Sandbox
from simllm.perturb.code.proof.harness_results import ORIGINAL, VARIANT, CaseResults
from simllm.perturb.code.proof.java_task import JavaTask

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
