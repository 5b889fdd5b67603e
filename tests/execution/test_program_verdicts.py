"""Verdicts on programs that are run on tests: reference results, and programs of each language."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from simllm.errors import InputError
from simllm.execution import Limits
from simllm.execution.program_verdicts import JudgeTest, ProgramFiles, judge, verdict_key
from simllm.execution.toolchains import compile_program

pytestmark = pytest.mark.slow

LIMITS = Limits(time=1, memory=64)
SUM = {
    "cpp": '#include <cstdio>\nint main(){ int a,b; scanf("%d %d",&a,&b); printf("%d\\n",a+b); }',
    "python": "print(sum(map(int, input().split())))",
    "java": """
public class Sum {
    public static void main(String[] arguments) {
        var scanner = new java.util.Scanner(System.in);
        System.out.println(scanner.nextInt() + scanner.nextInt());
    }
}
""",
}


def verdicts(judgement):
    return judgement.verdict, [test.verdict for test in judgement.tests]


@pytest.mark.parametrize("language", SUM)
def test_each_language(sandbox, language):
    tests = [JudgeTest("1 2\n", "3\n"), JudgeTest("1 2\n", "4\n"), JudgeTest("x\n", "-1\n")]
    judgement = judge(sandbox, language, SUM[language], tests, LIMITS)
    last = "WA" if language == "cpp" else "RE"
    assert verdicts(judgement) == ("WA", ["AC", "WA", last])
    assert judgement.tests[1].output == b"3\n"
    assert judgement.tests[0].outcome.peak_memory < 64 << 20
    broken = judge(sandbox, language, SUM[language] + " (", tests, LIMITS)
    assert verdicts(broken) == ("CE", [])
    assert "error" in broken.compile_log.lower()


def test_a_reply_without_code(sandbox):
    assert verdicts(judge(sandbox, "cpp", None, [JudgeTest("", "")], LIMITS)) == ("NC", [])


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("print(open('a.in').read(), file=open('a.out', 'w'))", "AC"),
        ("print(open('a.in').read())", "FE"),
        ("import os; os.mkfifo('a.out')", "FE"),
        ("import os; os.symlink('a.in', 'a.out')", "FE"),
        ("import os; os.mkdir('a.out')", "FE"),
        ("open('a.out', 'w').write('x' * 200)", "OL"),
        ("open('a.out', 'w').write('7'); raise SystemExit(1)", "RE"),
    ],
)
def test_files(sandbox, code, verdict):
    limits = dataclasses.replace(LIMITS, output=100)
    files = ProgramFiles("a.in", "a.out")
    assert judge(sandbox, "python", code, [JudgeTest("7\n", "7\n")], limits, files).verdict == verdict


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("import os; os.kill(os.getpid(), 9)", "RE"),
        ("raise MemoryError", "ML"),
        ("try:\n    raise MemoryError\nexcept MemoryError: print(1)", "AC"),
        ("open('/box/a', 'wb').write(bytes(1 << 27))", "RE"),
        ("print({'a', 'b', 'c', 'd'} and 1)", "AC"),
        ("print(len(str(7 ** 9000)) // 5000)", "AC"),
        ("n = " + "9" * 6000 + "\nprint(n // n)", "AC"),
        ("# -*- coding: latin-1 -*-\nprint(1)", "AC"),
    ],
)
def test_bad_ends(sandbox, code, verdict):
    limits = Limits(time=1, memory=256)
    assert judge(sandbox, "python", code, [JudgeTest("", "1\n")], limits).verdict == verdict


def test_large_programs_and_input_files_do_not_use_up_the_disk(sandbox):
    limits = dataclasses.replace(LIMITS, disk=2)
    code = "char a[3 << 20] = {1};\n" + SUM["cpp"]
    assert judge(sandbox, "cpp", code, [JudgeTest("1 2\n", "3\n")], limits).verdict == "AC"
    code = "open('b', 'wb').write(bytes(1 << 20)); print(len(open('a').read()), file=open('c', 'w'))"
    test = JudgeTest("x" * (3 << 20), str(3 << 20))
    assert judge(sandbox, "python", code, [test], limits, ProgramFiles("a", "c")).verdict == "AC"


def test_comparison(sandbox):
    tests = [JudgeTest("", "0.333333\n")]
    assert judge(sandbox, "python", "print(1/3)", tests, LIMITS, compare="float:1e-6").verdict == "AC"
    assert judge(sandbox, "python", "print(1/3)", tests, LIMITS).verdict == "WA"
    with pytest.raises(InputError, match="comparison"):
        judge(sandbox, "python", "print(1/3)", tests, LIMITS, compare="close")


def test_one_compilation_a_program(sandbox, monkeypatch):
    commands, run = [], sandbox.run
    monkeypatch.setattr(sandbox, "run", lambda argv, *a, **k: commands.append(argv[0]) or run(argv, *a, **k))
    judge(sandbox, "cpp", SUM["cpp"], [JudgeTest("1 2", "3")] * 5, LIMITS)
    assert commands == ["g++", *["./program"] * 5]


def test_tests_cannot_influence_each_other(sandbox):
    code = "import os\nprint(os.path.exists('left'), os.path.exists('/tmp/left'))\n"
    code += "open('left', 'w'); open('/tmp/left', 'w')"
    assert judge(sandbox, "python", code, [JudgeTest("", "False False")] * 2, LIMITS).verdict == "AC"


@pytest.mark.parametrize(
    "code",
    [
        "package a.b; public class X { public static void main(String[] a){ System.out.println(1); } }",
        "class Helper { } class X { public static void main(String... a){ System.out.println(1); } }",
        "interface X { static void main(String[] a){ System.out.println(1); } }",
        "public enum X { A; public static void main(String[] a){ System.out.println(1); } }",
    ],
)
def test_java_classes(sandbox, code):
    assert judge(sandbox, "java", code, [JudgeTest("", "1\n")], LIMITS).verdict == "AC"


def test_java_prints_unicode_and_large_programs_compile(sandbox):
    code = 'class X { public static void main(String[] a){ System.out.println("caf\u00e9"); } }'
    assert judge(sandbox, "java", code, [JudgeTest("", "caf\u00e9\n")], LIMITS).verdict == "AC"
    code = '#include <bits/stdc++.h>\nchar a[20000000] = {1};\nint main(){ std::regex r("a"); }'
    assert compile_program(sandbox, "cpp", code).outcome.succeeded


def test_memory_of_threads_that_outlive_main_is_watched(sandbox):
    code = """
#include <pthread.h>
#include <cstring>
#include <unistd.h>
void *take(void *) {
    for (int i = 0; i < 40; i++) { memset(new char[1 << 26], 1, 1 << 26); usleep(20000); }
    return 0;
}
int main() { pthread_t t; pthread_create(&t, 0, take, 0); pthread_exit(0); }
"""
    judgement = judge(sandbox, "cpp", code, [JudgeTest("", "")], Limits(time=5, memory=128))
    assert judgement.verdict == "ML"
    assert judgement.tests[0].outcome.peak_memory < 600 << 20  # of 2,560 MiB that it would take


def test_vectors(sandbox, shared):
    cases = json.loads((shared / "reference" / "repair_verdicts.json").read_text())["cases"]

    def run(case):
        tests = [JudgeTest(**test) for test in case["tests"]]
        files = ProgramFiles(**case["files"]) if "files" in case else None
        limits = Limits(time=case["time"], memory=case["memory"])
        return verdicts(judge(sandbox, case["language"], case["code"], tests, limits, files))

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(run, cases))
    wanted = [(case["verdict"], case["per test"]) for case in cases]
    assert len(cases) == 26
    assert dict(zip([case["name"] for case in cases], found, strict=True)) == dict(
        zip([case["name"] for case in cases], wanted, strict=True)
    )


@pytest.mark.parametrize("name", ["", "a/b", "..", "/etc/passwd", "*.out", "a\0b", 128 * "\u00e9"])
def test_rejects_file_names(name):
    with pytest.raises(InputError, match="expected a plain file name"):
        ProgramFiles("a.in", name)


@pytest.mark.parametrize("name", ["a.in", "A.IN", "\uff41.in"])
def test_the_output_file_is_not_the_input_file(name):
    with pytest.raises(InputError, match="the output file must not be the input file"):
        ProgramFiles("a.in", name)


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("cpp", ["program", "PROGRAM", "main.cpp"]),
        (
            "python",
            ["main.py", "Main.PY", "json.py", "json.pyc", "json.abi3.so", "sitecustomize.py", "__pycache__"],
        ),
        ("java", ["Main.class", "x.CLASS", "Main.java", "a.jar"]),
    ],
)
def test_files_never_take_the_place_of_code(sandbox, language, names):
    tests = [JudgeTest("print(1)", "1")]
    for name in names:
        for files in (ProgramFiles(name, "other"), ProgramFiles("other", name)):
            with pytest.raises(InputError, match=f"{name} is a file of the program itself, or could be run"):
                judge(sandbox, language, "", tests, LIMITS, files)


def test_verdict_key_depends_on_everything():
    tests, files = [JudgeTest("1", "2")], ProgramFiles("a", "b")
    base = ("cpp", "int main(){}", tests, LIMITS, "g++ 12", files, "lines")
    others = ("java", "int main(){ }", [JudgeTest("1", "3")], Limits(time=2), "g++ 13", None, "exact")
    keys = {verdict_key(*base)}
    keys |= {verdict_key(*base[:n], other, *base[n + 1 :]) for n, other in enumerate(others)}
    assert len(keys) == 1 + len(others)
    assert verdict_key(*base) == verdict_key(*base)
