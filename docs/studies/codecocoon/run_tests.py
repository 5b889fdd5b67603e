"""Run the checks of a bug on the code of a reply, in simllm's sandbox, and print the outcome."""

import json
import os
import sys
from pathlib import Path

from simllm.execution import Limits, Sandbox

LIMITS = Limits(time=10)
JAVA = """class Main {{
{code}
    static void check(boolean passed) {{ if (!passed) throw new AssertionError(); }}
    void test() {{
{test}
    }}
    public static void main(String[] arguments) {{ new Main().test(); }}
}}
"""

item = json.loads(Path(os.environ["SIMLLM_FOLDER"], "item.json").read_text())
code = sys.stdin.read()
if item["language"] == "java":
    files = {"Main.java": JAVA.format(code=code, test=item["test"]).encode()}
    build = ["javac", "-J-XX:TieredStopAtLevel=1", "-encoding", "UTF-8", "Main.java"]
    test = ["java", "-Xshare:auto", "Main"]
else:
    files = {"test.py": f"{code}\n{item['test']}".encode()}
    build, test = ["python3", "-m", "py_compile", "test.py"], ["python3", "test.py"]
with Sandbox() as sandbox:
    built = sandbox.run(build, files, limits=LIMITS, keep=["*.class"])
    if built.status != 0:
        print("uncompilable")
    else:
        done = sandbox.run(test, {**files, **built.files}, limits=LIMITS)
        print("timeout" if done.exceeded == "time" else "plausible" if done.status == 0 else "failing")
