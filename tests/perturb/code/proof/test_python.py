"""Tests of `prove`, which runs a Python function and its rewritten variant, and compares their behaviour."""

import pytest

from simllm.perturb.code.proof import ProofCase, prove

pytestmark = pytest.mark.slow

SAME = "def f(n: int): return n\n"
LESS = "def f(n: int): return n < 5\n"
SUM = "def f(n: int) -> int:\n    s = 0\n    for i in range(n):\n        s += i\n    return s\n"
SUM_VARIANT = """\
def g(n: int) -> int:
    s = 0
    i = 0
    while i < n:
        s += i
        i += 1
    return s
"""

FORKS = """\
def f(n: int):
    import os
    while True:
        try:
            os.fork()
        except OSError:
            pass
"""
DAMAGES = "def f(n: int):\n    import os, shutil\n    {}\n    return n < 5\n"
DAMAGE = {  # what functions do to the harness, and to the results of other functions
    "kills the harness": "os.kill(os.getppid(), 9)",
    "kills all": "os.kill(-1, 9)",
    "closes files": "os.closerange(0, 100)",
    "deletes the harness": "shutil.rmtree('/box')",
    "shuts the folder": "os.chmod('/box', 0)",
    "forges results": "[os.write(f, b'begin\\t99\\n\\xff\\noutcome\\t7\\t1\\tx\\nend\\n') "
    "for f in range(60) if os.path.exists(f'/proc/self/fd/{f}')]",
    "opens the output": "[open(f'/proc/{os.getppid()}/fd/{f}', 'w').write('x') for f in range(20) "
    "if os.path.exists(f'/proc/{os.getppid()}/fd/{f}')]",
    "opens the output of the first process": "[open(f'/proc/1/fd/{f}', 'wb').write(b'\\n'.join("
    "open('/box/key.txt', 'rb').read() + b'\\tbegin\\t%d' % n for n in range(99)) + b'\\n') "
    "for f in range(20) if os.path.exists(f'/proc/1/fd/{f}')]; "
    "os.path.exists('/proc/1/fd') and os.kill(os.getppid(), 9)",
    "leaves a module": "open('/box/colorsys.py', 'w').write('ONE_THIRD = 0')",
    "limits the harness": """import contextlib, resource
    with contextlib.suppress(OSError): resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1, 1))""",
}


def case(name, original, variant=None, names=None, around=""):
    return ProofCase(name, "python", original, variant or original, names or {}, around)


@pytest.fixture(scope="module")
def proofs(sandbox):
    """Compare many functions with their variants in one batch; return the outcome of each by its id."""
    cases = [
        case("sum", SUM, SUM_VARIANT, {"f": "g"}),
        case("untyped", "def f(xs, x):\n    return xs.count(x)\n"),
        case("keywords", "def f(a: str, *rest: int, b: bool, **more): return (a, rest, b)\n"),
        case("import", "import random\ndef f(n: int): return random.random()\n"),
        case("generator", "def f(n: int):\n    while True:\n        yield n\n        n += 1\n"),
        case("coroutine", "async def f(n: int) -> int: return n\n"),
        case("exits", "def f(n: int):\n    raise SystemExit(n)\n"),
        case("unknown annotation", "def f(xs: Optional['Foo']): return [xs, None]\n"),
        case("nan", "def f(x): return 1 if x < 1.0 else 2\n", "def f(x): return 2 if x >= 1.0 else 1\n"),
        case("argument", "def f(xs: list[int]):\n    xs.sort()\n    return xs\n",
             "def f(xs: list[int]):\n    return sorted(xs)\n"),
        case("yields", "def f(n: int): yield from range(n)\n", "def f(n: int): yield from range(n + 1)\n"),
        case("print", "def f(n: int): print(n)\n", "def f(n: int): print(-n)\n"),
        case("global", "def f(n: int):\n    global m\n    m = n\n",
             "def f(n: int):\n    global m\n    m = -n\n", around="m = 0\n"),
        case("variant is endless", SAME, "def f(n: int):\n    while n > 5: pass\n    return n\n"),
        case("variant has an error", SAME, "def f(n: int): return return\n"),
        case("random", "import os\ndef f(n: int): return os.urandom(8)\n"),
        case("unknown name", "def f(n: int): return helper(n)\n"),
        case("method", "def f(self, n: int): return n\n"),
        case("two", "def f(n): return n\ndef g(n): return n\n"),
        case("long literal", f"def f(n: Literal[0x{'f' * 9000}]): pass\n"),
        case("long number", f"def f(n: int): return n < {'1' * 3000}\n"),
        case("syntax", "def f(n:\n"),
        case("function", "def f(n: int): return lambda x: x + n + 1\n"),
        case("last", LESS),
    ]  # fmt: skip
    return {proof.id: proof for proof in prove(cases, sandbox)}


@pytest.fixture(scope="module")
def rough_proofs(sandbox):
    """Return the proofs of a batch in which some functions disturb their process, for example by exiting."""
    cases = [
        case("variant exits", SAME, "import os\ndef f(n: int): os._exit(0)\n"),
        case("dies", "import ctypes\ndef f(n: int): ctypes.string_at(0)\n"),
        case("forks", "import os\ndef f(n: int):\n    os.fork()\n    return n + 1\n"),
        case("forks without end", FORKS),
        *(case(name, DAMAGES.format(damage)) for name, damage in DAMAGE.items()),
        case("uses a module", "def f(n: int):\n    import colorsys\n    return colorsys.ONE_THIRD * n < 1\n"),
        case("endless", "def f(n: int):\n    while True:\n        try: n += 1\n        except: pass\n"),
        case("waits", "import time\ndef f(n: int): time.sleep(99)\n"),
        case("memory", "def f(n: int): return ' ' * (1 << 33)\n"),
        case("last", LESS),
    ]  # fmt: skip
    return {proof.id: proof for proof in prove(cases, sandbox)}


def test_proves_variants(proofs):
    for name in ("sum", "last"):
        assert (proofs[name].verdict, proofs[name].reason) == ("proven", ""), name
    names = "sum untyped keywords import generator coroutine exits last".split()
    for name in [*names, "unknown annotation"]:
        assert proofs[name].verdict == ("proven" if proofs[name].power else "unproven"), name
        assert proofs[name].inputs >= 10


def test_inputs_that_reveal_no_mutant_prove_nothing(proofs):
    """The result is a function, which is not called, so that all versions seem to agree."""
    found = proofs["function"]
    assert (found.verdict, found.mutants, found.power) == ("unproven", 2, 0)
    assert found.reason == "power 0: the inputs reveal none of 2 mutants"
    assert (proofs["untyped"].verdict, proofs["untyped"].reason) == ("unproven", "no mutants were run")


def test_refutes_wrong_variants_by_a_counterexample(proofs):
    for name in ("nan", "argument", "yields", "print", "global", "variant is endless"):
        assert proofs[name].verdict == "refuted", name
        assert proofs[name].counterexample.original != proofs[name].counterexample.variant
    assert proofs["nan"].counterexample.arguments == "nan"


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("random", "compiled", "two calls of the original differ"),
        ("unknown name", "compiled", "needs names that are unknown: helper"),
        ("method", "compiled", "is a method"),
        ("long literal", "compiled", "is nested too deeply, or has a number of too many digits"),
        ("two", "compiled", "is a file, not a function"),
    ],
)
def test_says_why_there_is_no_proof(proofs, name, verdict, reason):
    proof = proofs[name]
    assert (proof.verdict, proof.reason, proof.counterexample) == (verdict, reason, None)


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("variant exits", "refuted", "the variant ends its process"),
        ("dies", "compiled", "the function ends its process"),
        ("endless", "compiled", "exceeds the time limit"),
        ("waits", "compiled", "exceeds the time limit"),
        ("memory", "compiled", "needs much memory"),
        ("forks", "proven", ""),
        ("forks without end", "compiled", "exceeds the time limit"),
        ("kills the harness", "compiled", "the function ends its process"),
        ("kills all", "compiled", "the function ends its process"),
        ("closes files", "compiled", "the function ends its process"),
        ("deletes the harness", "compiled", "the function ends its process"),
        ("shuts the folder", "compiled", "the function ends its process"),
        ("forges results", "proven", ""),
        ("opens the output", "proven", ""),
        ("opens the output of the first process", "proven", ""),
        ("leaves a module", "proven", ""),
        ("limits the harness", "proven", ""),
        ("uses a module", "proven", ""),
        ("last", "proven", ""),
    ],
)
def test_a_rough_function_is_lost_alone(rough_proofs, name, verdict, reason):
    proof = rough_proofs[name]
    assert (proof.verdict, proof.reason, proof.counterexample) == (verdict, reason, None)


def test_python_says_what_does_not_compile(proofs):
    assert proofs["syntax"].verdict == "parsed"
    assert proofs["syntax"].reason.startswith("does not compile: ")
    assert proofs["variant has an error"].verdict == "refuted"
    assert proofs["variant has an error"].reason.startswith("the variant does not compile: ")


def test_reports_the_power_of_the_inputs(proofs):
    assert (proofs["sum"].mutants, proofs["sum"].killed_mutants, proofs["sum"].power) == (2, 2, 1)
