"""Proofs that Java variants behave like the originals: both are compiled and run in the sandbox."""

import pytest

from simllm.perturb.code.proof import ProofCase, prove

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("javac")]
SUM = "int f(int[] xs) { int s = 0; for (int i = 0; i < xs.length; i++) { s += xs[i]; } return s; }"
SUM_VARIANT = "int g(int[] xs) { int s = 0; int i = 0; while (i < xs.length) { s += xs[i]; i++; } return s; }"

FORGES = r"""
int f(int x) throws IOException {
    String lines = "\nbegin\t99\nend\t99\nbegin\tx\noutcome\t0\t1\t0\t7\n\u00ff";
    new FileOutputStream(FileDescriptor.out).write(lines.getBytes("ISO-8859-1"));
    new File("key.txt").delete();
    return x + 1;
}
"""


def case(name, original, variant=None, names=None, members=""):
    return ProofCase(name, "java", original, variant or original, names or {}, members)


@pytest.fixture(scope="module")
def proofs(sandbox):
    """Compare many functions with their variants in one batch; return the proofs (outcomes) by id."""
    cases = [
        case("sum", SUM, SUM_VARIANT, {"f": "g"}),
        case("nan", "int f(double x) { if (x < 1) { return 1; } else { return 2; } }",
             "int f(double x) { if (x >= 1) { return 2; } else { return 1; } }"),
        case("argument", "int[] f(int[] xs) { Arrays.sort(xs); return xs; }",
             "int[] f(int[] xs) { int[] ys = xs.clone(); Arrays.sort(ys); return ys; }"),
        case("field", "void f(int x) { seen += x; }", "void f(int x) { seen -= x; }", members="int seen;"),
        case("print", "void f(String s) { System.out.println(s); }",
             "void f(String s) { System.out.print(s); }"),
        case("exception", "int f(int[] xs, String s) { return xs[3] - s.length(); }",
             "int f(int[] xs, String s) { return -s.length() + xs[3]; }"),
        case("variant is endless", "int f(int x) { return x; }",
             "int f(int x) { while (x > 5) { } return x; }"),
        case("variant has an error", "int f(int x) { return x; }", "int f(int x) { return y; }"),
        case("random", "double f(int x) { return Math.random(); }"),
        case("unknown type", "Foo f(Foo x) { return x; }"),
        case("unknown name", "int f(int x) { return x + size(); }"),
        case("syntax", "int f(int x) { return }"),
        case("class file", "class A { int f(int x) { return x; } }"),
        case("overridden", "@Override public int f(int x) { return x; }"),
        case("generic", "<T> List<T> f(Map<String, ? extends T> m, T... xs) { return List.of(xs); }"),
        case("constructor", "Point(int x) { this.x = x; }", members="int x;"),
        case("wrong constructor", "Point(int x) { this.x = x; }", "Point(int x) { this.x = -x; }",
             members="int x;"),
        case("long name", f"{250 * 'P'}(int x) {{ this.x = x; }}", members="int x;"),
        case("static state", "int f(int x) { return total += x; }", members="static int total;"),
        case("looks like a message", "int f(int x) { return \"\"\"\np0_0/Case.java:1: error: forged\n"
             "p999_0/Case.java:1: error: forged\n\"\"\"; }"),
        case("last", "int f(int x) { return x + 1; }"),
    ]  # fmt: skip
    return {proof.id: proof for proof in prove(cases, sandbox)}


@pytest.fixture(scope="module")
def rough_proofs(sandbox):
    """Return the proofs of a batch in which some functions disturb their process, for example by exiting."""
    cases = [
        case("variant exits", "int f(int x) { return x; }",
             "int f(int x) { if (x > 3) System.exit(0); return x; }"),
        case("exits", "int f(int x) { System.exit(3); return x; }"),
        case("endless", "int f(int x) { while (true) { try { x++; } catch (Throwable t) { } } }"),
        case("memory", "int f(int x) { return new int[1 << 30].length; }"),
        case("threads", "void f(int x) { new Thread(() -> { while (true) { } }).start(); }"),
        case("forges results", FORGES),
        case("closes the output", "int f(int x) throws IOException { "
             "new FileOutputStream(FileDescriptor.out).close(); return x + 1; }"),
        case("processes", 'int f(int x) throws IOException { '
             'if (x == 0) { new ProcessBuilder("sleep", "50").start(); } return x + 1; }'),
        case("last", "int f(int x) { return x + 1; }"),
    ]  # fmt: skip
    return {proof.id: proof for proof in prove(cases, sandbox)}


def test_proves_variants(proofs):
    for name in ("sum", "overridden", "generic", "constructor", "static state", "last"):
        assert proofs[name].verdict == ("proven" if proofs[name].power else "unproven")
        assert proofs[name].inputs > 30
    assert (proofs["last"].verdict, proofs["last"].reason) == ("proven", "")


def test_refutes_wrong_variants_by_a_counterexample(proofs):
    for name in ("nan", "argument", "field", "print", "exception", "variant is endless", "wrong constructor"):
        assert proofs[name].verdict == "refuted", name
        assert proofs[name].counterexample.original != proofs[name].counterexample.variant
    assert proofs["nan"].counterexample.arguments == "double:NaN"
    assert proofs["print"].counterexample.original.startswith(proofs["print"].counterexample.variant[:-3])


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("variant has an error", "refuted", "the variant needs names that are unknown: y"),
        ("random", "compiled", "two calls of the original differ"),
        ("unknown type", "parsed", "needs types that are unknown: Foo"),
        ("unknown name", "parsed", "needs names that are unknown: size"),
        ("class file", "parsed", "is a file, not a function"),
        ("long name", "parsed", "has a name that is too long"),
    ],
)
def test_says_why_there_is_no_proof(proofs, name, verdict, reason):
    proof = proofs[name]
    assert (proof.verdict, proof.reason, proof.counterexample) == (verdict, reason, None)


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("variant exits", "refuted", "the variant ends its process"),
        ("exits", "compiled", "the function ends its process"),
        ("endless", "compiled", "exceeds the time limit"),
        ("memory", "compiled", "needs much memory"),
        ("threads", "compiled", "leaves threads behind"),
        ("forges results", "proven", ""),
        ("closes the output", "compiled", "the function ends its process"),
        ("processes", "proven", ""),
        ("last", "proven", ""),
    ],
)
def test_a_rough_function_is_lost_alone(rough_proofs, name, verdict, reason):
    proof = rough_proofs[name]
    assert (proof.verdict, proof.reason, proof.counterexample) == (verdict, reason, None)


def test_the_parser_says_where_a_syntax_error_is(proofs):
    assert proofs["syntax"].verdict == "parsed"
    assert proofs["syntax"].reason.startswith("does not compile: line 1: syntax error")


def test_reports_the_power_of_the_inputs(proofs):
    assert proofs["sum"].mutants == proofs["sum"].killed_mutants > 0
    assert proofs["sum"].power == 1
