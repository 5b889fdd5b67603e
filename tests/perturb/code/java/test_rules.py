"""The rules that rewrite Java: what each rule changes in a function, and what it leaves."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from simllm.perturb.code import rewrite
from simllm.perturb.code.rules import OPTIONAL_RULES


def rewritten(rule, body, before="void f(int n, String s, double d, Object o)"):
    """Apply a rule to a Java function with a given body; return the new body."""
    head = before + " { "
    text = rewrite(head + body + " }", "java", [rule]).text
    assert text.startswith(head)
    return text[len(head) : -2]


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("reverse-if", "if (!(n > 1)) g(); else h();", "if (n > 1) h(); else g();"),
        ("reverse-if", "if (d > 1) { g(); } else h();", "if (!(d > 1)) h(); else { g(); }"),
        ("reverse-if", "if (n > 1 && s == null) {}else{h();}", "if (n <= 1 || s != null) {h();} else {}"),
        ("reverse-if", "if (n > 1) {} else while (n > 0) n--;", "if (n <= 1) { while (n > 0) n--; } else {}"),
        ("reverse-if", "if (n == 1 || n > 2 && d == 0) {} else g();",
         "if (n != 1 && (n <= 2 || d != 0)) g(); else {}"),
        ("reverse-if", "if (o instanceof String t) {} else g();", None),
        ("nest-else-if", "if (n > 1) {} else /* b */ if (n > 0) g();",
         "if (n > 1) {} else { /* b */ if (n > 0) g();\n}"),
        ("swap-relation", "boolean b = n < 3;", "boolean b = 3 > n;"),
        ("swap-relation", "boolean b = g() < h();", None),
        ("swap-relation", "boolean b = n++ < n;", None),
        ("swap-equals", "boolean b = n == 1 == (d == 2);", "boolean b = (2 == d) == (1 == n);"),
        ("expand-increment", "for (int i = 0; i < n; i++, --n) s += i++;",
         "for (int i = 0; i < n; i += 1, n -= 1) s += i++;"),
        ("expand-increment", "switch (n) { case 1 -> n++; default -> {} }", None),
        ("for-to-while", "for (int i = 0; i < n; i++) ;", "int i = 0;\nwhile (i < n) { i++; }"),
        ("for-to-while", "{ for (;;) { g(); } }", "{ while (true) { g(); } }"),
        ("for-to-while", "{ for (; n > 0; n--) { n -= 2; } }", "{ while (n > 0) { n -= 2; n--; } }"),
        ("for-to-while", "for (int i = 0; i < n; i++) { while (true) { g(); } }", None),
        ("for-to-while", "for (int i = 0; i < n; i++) { g(); } Runnable r = () -> { int i = 1; };", None),
        ("remove-comments", "g(); /* a */ h(); // b\n", "g();  h();\n"),
        ("remove-comments", "int/**/m = 1 +/**/+n;", "int m = 1 + +n;"),
        ("expand-compound", "n += 1; d *= n + 1; s += n; byte b = 1; b += 1;",
         "n = n + 1; d = d * (n + 1); s = s + n; byte b = 1; b += 1;"),
        ("add-braces", "if (n > 1) g(); else h(); while (n > 0) n--;",
         "if (n > 1) { g(); } else { h(); } while (n > 0) { n--; }"),
    ],
)  # fmt: skip
def test_rule(rule, before, after):
    assert rewritten(rule, before) == (before if after is None else after)


def test_dead_code_comes_after_the_call_of_another_constructor():
    found = rewrite("A(int n) { this(); n++; }", "java", ["dead-code"])
    assert found.text.split() == "A(int n) { this(); if (false) { throw null; } n++; }".split()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("class A { private void f() {} void g(A o) { o.f(); } }", "a call may mean another method"),
        ("class A { private void f() {} void f(int n) {} }", "another method has the same name"),
        ("class A { private void f() {} String s = \"f\"; }", "a string holds the name"),
        ("class A { private native void f(); }", "a native method is found by its name"),
        ("class A { @Inject private void f() {} }", "an annotation may read the name"),
        ("class A { private void writeObject(Object o) {} }", "a method of this name has a meaning"),
    ],
)  # fmt: skip
def test_methods_that_may_be_found_by_name_keep_it(source, reason):
    found = rewrite(source, "java", ["rename-function"], {"f": "run1", "writeObject": "run1"})
    assert found.text == source
    assert found.skipped[0].reason.startswith(reason)


def test_public_methods_of_a_file_keep_their_names():
    source = "class A { public int f(int n) { return g(n); } private int g(int n) { return this.g(n); } }"
    found = rewrite(source, "java", ["rename-function", "rename-parameter"], "plain")
    assert found.text == source.replace("g(", "f0(").replace("int n", "int p0").replace("(n)", "(p0)")


def test_names_of_a_class_inside_that_may_be_inherited_stay():
    source = "void f(int x) { new Base() { int g() { return x; } }; }"
    found = rewrite(source, "java", ["rename-parameter"], "plain")
    assert found.text == source
    assert found.skipped[0].reason == "a class inside may inherit a field of this name"


def test_parameters_of_a_constructor_of_a_record_keep_their_names():
    source = (
        "record Span(int first, int... rest) {\n"
        "    Span(int first, int... rest) { this.first = first; this.rest = rest; }\n"
        "    int plus(int n) { return first + n; }\n"
        "}\n"
    )
    found = rewrite(source, "java", ["rename-parameter"], "plain")
    assert found.text == source.replace("int n", "int p0").replace("+ n", "+ p0")
    reasons = [skipped.reason for skipped in found.skipped]
    assert reasons == ["a constructor of a record needs the names of the components"] * 2


@pytest.fixture(scope="module")
def java_util(tmp_path_factory):
    """Return two folders: the sources of java.util, and the Java compiler of the same version."""
    for compiler in [shutil.which("javac"), *Path("/usr/lib/jvm").glob("*/bin/javac")]:
        home = Path(compiler).resolve().parents[1] if compiler else Path()
        if (home / "lib" / "src.zip").is_file():
            folder = tmp_path_factory.mktemp("jdk")
            with zipfile.ZipFile(home / "lib" / "src.zip") as archive:
                for name in archive.namelist():
                    if name.startswith("java.base/java/util/") and name.count("/") == 3:
                        archive.extract(name, folder)
            return folder / "java.base", home / "bin"
    pytest.skip("no JDK with its sources (Debian: apt-get install openjdk-17-source)")


@pytest.mark.slow
@pytest.mark.parametrize("rules", [None, OPTIONAL_RULES], ids=["default", "optional"])
def test_rewritten_java_util_compiles_and_compiles_programs_to_the_same_classes(java_util, tmp_path, rules):
    sources, programs = java_util
    arguments = {"rules": rules} if rules else {}
    counts = {}
    for file in sorted(sources.rglob("*.java"))[::2]:  # 180 files are enough for all rules
        found = rewrite(file.read_text(), "java", **arguments, names=lambda name, kind, values: [f"{name}_v"])
        counts = {rule: counts.get(rule, 0) + count for rule, count in found.counts.items()}
        target = tmp_path / "source" / file.relative_to(sources)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(found.text)
    assert all(counts.values())
    files = [str(file) for file in (tmp_path / "source").rglob("*.java")]
    patch = ["--patch-module", f"java.base={tmp_path / 'source'}"]
    quick = "-J-XX:TieredStopAtLevel=1"  # the second compiler of the JVM takes more time than it saves
    run([programs / "javac", quick, "-nowarn", "-proc:none", "-d", tmp_path / "jdk", *patch, *files])
    program = Path(__file__).with_name("Collections.java.txt").read_text()
    (tmp_path / "Program.java").write_text(program)
    run([programs / "javac", "-d", tmp_path / "as-it-came", tmp_path / "Program.java"])
    patched = f"--patch-module=java.base={tmp_path / 'jdk'}"
    run([programs / "javac", f"-J{patched}", "-d", tmp_path / "rewritten", tmp_path / "Program.java"])
    a, b = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("as-it-came", "rewritten")
    )
    assert a == b
    outputs = [
        run([programs / "java", *options, "-cp", tmp_path / "as-it-came", "Program"])
        for options in ([], [patched])
    ]
    assert outputs[0] == outputs[1]


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


CHAIN = """int f(int a) {
  if (a == 1)
    return 1;
  else if (a == 2)
    return 2;
  else
    return 3;
}
"""


def test_else_if_without_braces_keeps_the_layout():
    assert (
        rewrite(CHAIN, "java", ["nest-else-if"]).text
        == """int f(int a) {
  if (a == 1)
    return 1;
  else {
    if (a == 2)
      return 2;
    else
      return 3;
  }
}
"""
    )
    assert (
        rewrite(CHAIN, "java", ["nest-else-if", "reverse-if"]).text
        == """int f(int a) {
  if (a != 1) {
    if (a != 2)
      return 3;
    else
      return 2;
  }
  else return 1;
}
"""
    )


def test_else_if_on_one_line_is_nested_by_depth():
    source = """int f(int a) {
    if (a == 1) { return 1; } else if (a == 2) { return 2; } else if (a == 3) { return 3; }
    return 4;
}
"""
    assert (
        rewrite(source, "java", ["nest-else-if"]).text
        == """int f(int a) {
    if (a == 1) { return 1; } else {
        if (a == 2) { return 2; } else {
            if (a == 3) { return 3; }
        }
    }
    return 4;
}
"""
    )
