"""The rewrites of Python equal reference results, and rewritten modules of CPython pass their tests."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from simllm.perturb.code import rewrite

MODULES = (
    "textwrap heapq difflib statistics fractions argparse configparser csv shlex string calendar tokenize"
)
MODULES = [*MODULES.split(), "bisect", "graphlib", "pprint", "tomllib", "json"]


@pytest.fixture(scope="module")
def cases(shared):
    text = (shared / "reference" / "metamorphic-python.json").read_text(encoding="utf-8")
    return json.loads(text)["cases"]


def outcome(code, case, entry, call):
    """Run a call of a function; return its result, the arguments, and observed expressions as one string."""
    module = {"__name__": "vector"}
    exec(code, module)
    arguments = eval(f"[{', '.join(call)}]", module)
    try:
        result = repr(module[entry](*arguments))
    except Exception as error:
        result = f"raises {type(error).__name__}"
    shown = ["<iterator>" if hasattr(value, "__next__") else repr(value) for value in arguments]
    return " | ".join([result, *shown, *(repr(eval(text, module)) for text in case.get("observe") or ())])


def test_rewrites_are_made_where_they_are_safe_and_keep_the_outcomes(cases):
    for case in cases:
        found = rewrite(case["source"], "python", case["rules"], case.get("names") or {})
        if case["must"] != "either":
            assert (found.text != case["source"]) == (case["must"] == "apply"), case["id"]
        code = compile(f"{case.get('around') or ''}\n{found.text}", case["id"], "exec")
        entry = found.names.get(case["entry"], case["entry"])
        outcomes = [outcome(code, case, entry, call) for call in case["args"]]
        assert outcomes == case["outcomes"], case["id"]


def sources():
    """Return the source of each tested module of the standard library, by its path in the library."""
    library = Path(sysconfig.get_path("stdlib"))
    found = {}
    for name in MODULES:
        file = library / f"{name}.py"
        for path in [file] if file.exists() else sorted((library / name).rglob("*.py")):
            found[path.relative_to(library)] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.slow
def test_rewritten_modules_of_cpython_pass_its_tests(tmp_path):
    tests = [f"test_{name}" for name in MODULES]
    if subprocess.run([sys.executable, "-c", "import test.test_json"], capture_output=True).returncode:
        pytest.skip("this Python has no package test")
    counts = {}
    for place, source in sources().items():
        found = rewrite(source, "python", names="lexicon")
        counts = {rule: counts.get(rule, 0) + count for rule, count in found.counts.items()}
        (tmp_path / place).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / place).write_text(found.text, encoding="utf-8")
    assert all(counts.values()), counts
    done = subprocess.run(
        [sys.executable, "-m", "test", *tests],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "tomllib" in done.stdout


@pytest.mark.slow
def test_rewritten_modules_of_the_library_compile(tmp_path):
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted(library.glob("*.py"))[::4]:
        source = file.read_bytes().decode("utf-8", errors="replace")
        compile(rewrite(source, "python", names="plain").text, file.name, "exec")
