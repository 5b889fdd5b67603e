"""Benchmark of the sandbox: the time that it adds to a run, and how often a program is compiled.

python -m tests.benchmarks.sandbox
python -m tests.benchmarks.sandbox --json tests/benchmarks/results/sandbox-cpu.json
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from simllm.execution import Limits, Sandbox
from simllm.execution.messages import ENVIRONMENT
from simllm.execution.program_verdicts import JudgeTest, judge
from simllm.execution.toolchains import compile_program
from tests.benchmarks import machine

LIMITS = Limits(time=5, memory=256)
PROGRAMS = {
    "cpp": '#include <cstdio>\nint main(){ int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); }',
    "python": "print(sum(map(int, input().split())))",
    "java": "class A { public static void main(String[] a) { var s = new java.util.Scanner(System.in);\n"
    "System.out.println(s.nextInt() + s.nextInt()); } }",
}


def milliseconds(run, repeats):
    """Return the median time of a function in milliseconds."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - begun))
    return statistics.median(times)


def overhead(sandbox, language, repeats):
    """Return the time of one run of a program without the sandbox and in it, and the difference."""
    program = compile_program(sandbox, language, PROGRAMS[language])
    command = program.command(LIMITS)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in program.files.items():
            (Path(folder) / name).write_bytes(content)
            (Path(folder) / name).chmod(0o755)

        def bare():
            done = subprocess.run(
                command, input=b"1 2", capture_output=True, cwd=folder, env=ENVIRONMENT, check=True
            )
            assert done.stdout == b"3\n"

        def contained():
            assert sandbox.run(command, program.files, b"1 2", LIMITS).stdout == b"3\n"

        times = {"bare ms": milliseconds(bare, repeats), "sandbox ms": milliseconds(contained, repeats)}
    return times | {"overhead ms": times["sandbox ms"] - times["bare ms"]}


def compilations(sandbox, tests):
    """Return how often a program is compiled when it is judged by many tests."""
    commands, run = [], sandbox.run
    sandbox.run = lambda argv, *rest, **options: commands.append(argv[0]) or run(argv, *rest, **options)
    judgement = judge(sandbox, "cpp", PROGRAMS["cpp"], [JudgeTest("1 2", "3")] * tests, LIMITS)
    del sandbox.run
    assert judgement.verdict == "AC"
    return {"tests": tests, "compilations": commands.count("g++")}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50, help="runs of each program; default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    options = parser.parse_args()
    with Sandbox() as sandbox:
        results = {language: overhead(sandbox, language, options.repeats) for language in PROGRAMS}
        results["one program"] = compilations(sandbox, 20)
    print(json.dumps(results, indent=1))
    if options.json:
        machine.write(options.json, **results)
