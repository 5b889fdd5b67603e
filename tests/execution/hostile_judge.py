"""Script that runs the hostile programs of a file in the sandbox, and prints their verdicts as JSON.

The argument is the file. Beside each hostile program, a harmless program runs. The script imports no package
besides simllm.execution, so that any Python can run it.
"""

import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from simllm.execution import Limits, Sandbox
from simllm.execution.program_verdicts import JudgeTest, ProgramFiles, judge

MEMORY = 128  # MiB


def others_of_the_same_user(supervisors):
    """Return all processes of the users that run the supervisors, except the supervisors and this script."""
    judges = {str(pid) for pid in (os.getpid(), *supervisors)}
    users = {Path("/proc", str(pid)).stat().st_uid for pid in supervisors}
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid in users and folder.name not in judges:
                found[folder.name] = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def one(sandbox, case, port):
    """Compile and run one program; return its verdict, its time, its output and the compiler's messages."""
    given = f"{port}\n" if "port" in case["holds"] else ""
    tests = [JudgeTest(given, case.get("output", ""))]
    files = ProgramFiles(**case["files"]) if "files" in case else None
    endless = "TL" in case.get("verdicts", [])
    limits = Limits(time=2 if endless else 10, memory=MEMORY)  # the search of a cold disk takes seconds
    begun = time.monotonic()
    judgement = judge(sandbox, case["language"], case["code"], tests, limits, files)
    return {
        "verdict": judgement.verdict,
        "seconds": time.monotonic() - begun,
        "output": [test.output[:100].decode() for test in judgement.tests],
        "kept": max((len(test.outcome.stdout) for test in judgement.tests), default=0),
        "log": judgement.compile_log,
    }


if __name__ == "__main__":
    results = {"uid": os.getuid(), "cases": {}}
    cases = json.loads(Path(sys.argv[1]).read_text())["hostile"]
    with (
        Sandbox() as sandbox,
        ThreadPoolExecutor(1) as thread,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        harmless = {"language": "python", "code": "print(1)", "output": "1\n", "holds": ""}
        for case in cases:
            beside = thread.submit(one, sandbox, harmless, 0)
            result = one(sandbox, case, server.getsockname()[1])
            result["beside"] = beside.result()["verdict"]
            result["left"] = others_of_the_same_user([supervisor.pid for supervisor in sandbox._pool._all])
            results["cases"][case["name"]] = result
        server.settimeout(0)
        try:
            results["visitor"] = str(server.accept())
        except BlockingIOError:
            results["visitor"] = None
    print(json.dumps(results))
