"""Benchmark of proofs in batches, against single javac and java processes.

    python -m tests.benchmarks.proofs --reference metamorphic-java.json
    python -m tests.benchmarks.proofs --reference metamorphic-java.json --json results.json

A proof runs a function and its variant on the same inputs, and compares the results. The variant is made by
rewriting the function by the rules in the reference file. A proof without batches needs at least this: the
function and the variant are each compiled with an empty `main`, and started. The mean time of these steps is
measured for the first functions of the file.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from simllm.execution import Sandbox
from simllm.perturb.code.proof import ProofCase, ProofSummary, prove
from simllm.perturb.code.rewriting import rewrite
from tests.benchmarks import machine

CLASS = """
import java.util.*; import java.util.function.*;
class Case {{
{members}
{source}
public static void main(String[] args) {{ }}
}}
"""


def read_cases(file):
    """Read the functions of a reference file, and rewrite each by the rules that the file gives for it."""
    cases = []
    for case in json.loads(file.read_text())["cases"]:
        found = rewrite(case["source"], "java", case["rules"], case.get("names", {}))
        members = case.get("members", "")
        cases.append(ProofCase(case["id"], "java", case["source"], found.text, found.names, members))
    return cases


def seconds_one_by_one(cases):
    """Return the seconds per function if it and its variant each need a javac and a java process."""
    begun = time.perf_counter()
    for case in cases:
        for source in (case.original, case.variant):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "Case.java").write_text(CLASS.format(members=case.around, source=source))
                subprocess.run(["javac", "-nowarn", "-d", folder, f"{folder}/Case.java"], check=True)
                subprocess.run(["java", "-cp", folder, "Case"], check=True)
    return (time.perf_counter() - begun) / len(cases)


def seconds_in_batches(cases, sandbox, mutants, parallel):
    """Return the seconds per function if functions are proven in batches, and the summary of the proofs."""
    summary = ProofSummary()
    begun = time.perf_counter()
    for proof in prove(cases, sandbox, mutants=mutants, parallel=parallel):
        summary.add(proof)
    return (time.perf_counter() - begun) / len(cases), summary


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reference", type=Path, required=True, help="functions with rules and names")
    parser.add_argument("--one-by-one", type=int, default=10, help="functions for the way without batches")
    parser.add_argument("--parallel", type=int, default=1, help="batches at the same time")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    cases = read_cases(args.reference)
    results = machine.facts() | {"functions": len(cases), "parallel": args.parallel}
    single = seconds_one_by_one(cases[: args.one_by_one])
    results["one by one ms"] = 1000 * single
    with Sandbox() as sandbox:
        for name, mutants in (("batches", 0), ("batches with mutants", 2)):
            seconds, summary = seconds_in_batches(cases, sandbox, mutants, args.parallel)
            results[name] = {
                "ms": 1000 * seconds,
                "times as fast": single / seconds,
                "proven": summary.verdicts["proven"],
                "unproven": summary.verdicts["unproven"],
                "inputs": summary.inputs,
                "mutants": summary.mutants,
                "killed mutants": summary.killed_mutants,
            }
    text = json.dumps(results, indent=2)
    print(text)
    if args.json:
        args.json.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
