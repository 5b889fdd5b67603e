"""Compilers and interpreters: their versions, and the file names and main classes of Java programs."""

import pytest

from simllm.errors import InputError
from simllm.execution import toolchains
from simllm.execution.toolchains import file_name, find_toolchain, main_class, toolchain_version


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("public class Solution { }", "Solution.java"),
        ("class A { }\npublic final class B { public class C { } }", "B.java"),
        ("class A { public static class B { } }", "Main.java"),
        ("// public class A\n/* public class B */ public abstract class C { }", "C.java"),
        ('@X("public class A {") public strictfp class B { }', "B.java"),
        ("class A { char c = '\"'; char b = '{'; String s = \"}\\\"{\"; }\npublic class D { }", "D.java"),
        ('class A { String s = """\n } public class B {\n"""; }\npublic class D { }', "D.java"),
        ("public record Pair(int a) { }", "Pair.java"),
        ("public enum Color { RED }", "Color.java"),
        ("public @interface Mark { }", "Mark.java"),
        ("public sealed interface Shape permits A { }", "Shape.java"),
        ("public @Deprecated class Q { }", "Q.java"),
        ("public @X.Y({1, 2}) final @ Z(@W(v = (3))) class Q { }", "Q.java"),
        ('public @X ("a)") @interface Mark { }', "Mark.java"),
        ("public @Finalclass record Pair(int a) { }", "Pair.java"),
        ("public class Gr\u00f6\u00dfe$1 { }", "Gr\u00f6\u00dfe$1.java"),
        (f"public class {249 * 'x'} {{ }}", f"{249 * 'x'}.java"),
        (f"public class {250 * 'x'} {{ }}", "Main.java"),
        (f"public class {125 * chr(0xE9)} {{ }}", "Main.java"),
        ("}}} public class A {", "Main.java"),
        ("", "Main.java"),
    ],
)
def test_file_name(source, name):
    assert file_name(source) == name


@pytest.mark.parametrize(
    "source",
    [
        'public class A { String s = """\n' + 5000 * "line\\n",
        "public " + 5000 * "@X  " + "int",
        "public " + 5000 * "@xabstract ",
        100_000 * "public @",
        100_000 * "/*",
        100_000 * '"""\\',
        100_000 * '\\"',
        100_000 * "\\'",
        "public " + 200_000 * " " + "x",
    ],
)
def test_broken_code_takes_no_time(source):
    """A regular expression that backtracks would take practically forever on such code."""
    assert file_name(source) in ("A.java", "Main.java")


def test_main_class():
    with_main = b"..\x01\x00\x04main\x01\x00\x16([Ljava/lang/String;)V.."
    assert main_class("Main.java", {"A.class": b"", "B.class": with_main}) == "B"
    assert main_class("C.java", {"a/b/B.class": with_main, "a/b/C.class": with_main}) == "a.b.C"
    assert main_class("C.java", {"A.class": b""}) == "C"


def test_missing_tools(monkeypatch):
    monkeypatch.setattr(toolchains.shutil, "which", lambda name, path: None)
    with pytest.raises(
        InputError, match=r"java: no javac in /usr/bin.*: apt-get install default-jdk-headless"
    ):
        find_toolchain("java")
    with pytest.raises(InputError, match="language 'cobol': expected one of cpp, python, java"):
        find_toolchain("cobol")


def test_versions(sandbox):
    assert toolchain_version(sandbox, "cpp").startswith("g++ ")
    assert toolchain_version(sandbox, "python").startswith("Python 3.")
