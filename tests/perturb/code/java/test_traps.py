"""Java code that looks safe to rewrite and is not."""

import pytest

from simllm.errors import InputError
from simllm.perturb.code import rewrite


def function(body):
    return f"void f(int n, String s, Object o) {{ {body} }}"


@pytest.mark.parametrize(
    ("rule", "source", "reason"),
    [
        ("reverse-if", "class A { <T> T get() { return null; } void f() { if (get()) f(); else get(); } }",
         "the compiler may infer the type of the condition from the if"),
        ("reverse-if", function("new Base() { { if (n < 1) g(); else h(); } };"), None),
        ("for-to-while", function("for (; n < 3; n++) { while (true) try { break; } finally { return; } }"),
         "the end of the body may be unreachable"),
        ("for-to-while", function("for (;; n++) { switch (s) { case null, default -> { return; } } }"),
         "the end of the body may be unreachable"),
        ("for-to-while", function("for (;; n++) { switch (o) { case E.A -> { return; } } }"),
         "the end of the body may be unreachable"),
        ("for-to-while", function("for (; T.ok(); T.next()) { class T {} }"),
         "the body declares T, which the update names"),
        ("for-to-while", function("for (;; add(() -> n)) { if (n > 1) continue; }"),
         "the update makes a class, and each copy of it would make another one"),
        ("for-to-while", function("for (;; o.notify()) { synchronized (o) { if (n > 1) continue; } }"),
         "a continue of the loop stands in a try or synchronized statement"),
        ("expand-increment", function("(n)++;"), "the variable stands in parentheses"),
        ("expand-increment", function("new Base() { { n++; } };"), "the type is unknown or too narrow"),
        ("swap-equals", "<T1 extends Integer> boolean f(T1 a, int[] x, int k) { return a == x[k]; }",
         "the order in which the two sides are evaluated may matter"),
        ("swap-equals", "class A implements I, J { boolean f() { return FIELD_OF_I == FIELD_OF_J; } }",
         "the order in which the two sides are evaluated may matter"),
        ("rename-parameter", 'class A { @GetMapping("/users/{s}") void f(String s) {} }',
         "an annotation holds the name"),
        ("rename-function", 'class A { private void s() {} @MethodSource("A#s") void f() {} }',
         "an annotation holds the name"),
        ("rename-function", "class A extends B { private void s(Object o) { s(\"for B.s(String)\"); } }",
         "the class may inherit a method of the old or new name"),
        ("rename-parameter",
         "void f(String s) { new A() { String g(Object t) { if (t instanceof String s) {} return s; } }; }",
         "a pattern in a class inside declares a variable of this name"),
    ],
)  # fmt: skip
def test_code_that_may_change_its_meaning_stays(rule, source, reason):
    found = rewrite(source, "java", [rule], {"s": "text", "n": "number"})
    if reason is None:  # the field of the class Base may be a double
        assert "!(n < 1)" in found.text
    else:
        assert found.text == source
        assert reason in [place.reason for place in found.skipped]


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("swap-relation", "boolean f(int n) { return-1<n; }", "boolean f(int n) { return n>-1; }"),
        ("expand-compound", "void f(int n) { n-=-1; }", "void f(int n) { n= n - -1; }"),
        ("expand-compound", "void f(int n) { n+=n-=n*2; }", "void f(int n) { n= n +(n= n -(n*2)); }"),
        ("expand-increment", "class A { int n; A() { this.n++; } }",
         "class A { int n; A() { this.n += 1; } }"),
        ("add-braces", "void f(int n) { if (n > 1) // why\n n++; }",
         "void f(int n) { if (n > 1) // why\n { n++; } }"),
        ("for-to-while", "void f(int n) {\nfor (; n < 3; n++) // why\n  g();\n}",
         "void f(int n) {\nwhile (n < 3) { // why\n  g();\n  n++;\n}\n}"),
        ("remove-comments", "void f() {}\n// end", "void f() {}\n"),
        ("rename-parameter", "void f(int n) { record R(int n, int... m) {} g(n); }",
         "void f(int p0) { record R(int n, int... m) {} g(p0); }"),
    ],
)  # fmt: skip
def test_rewrites_of_unusual_code(rule, before, after):
    assert rewrite(before, "java", [rule], "plain").text == after


@pytest.mark.parametrize(
    ("divisor", "swapped"),
    [(text, False) for text in ("0", "-0", "0b0", "0x0_0", "00L", "'\\0'", "m")]
    + [(text, True) for text in ("7", "-1", "0b10", "0xA", "010", "1_000L")],
)
def test_operands_are_not_exchanged_if_a_division_may_fail(divisor, swapped):
    source = f"boolean f(int m, int a) {{ return a / {divisor} < m / a; }}"
    assert (rewrite(source, "java", ["swap-relation"]).text != source) == swapped


def test_no_method_gets_the_name_of_a_method_of_object():
    names = {"inform": ["notify", "tell"]}
    found = rewrite(
        "class A { private void inform() {} }", "java", ["rename-function"], lambda n, *_: names[n]
    )
    assert found.names == {"inform": "tell"}


@pytest.mark.parametrize(
    "text",
    [
        r's = "\u0022 + n + \u0022";',
        r"// \u000a n = 1;",
        "// old\r n = 1;\n",
        r"/* \u002a/ n = 1; /* */",
        r"'\u005c''",
    ],
)
def test_escapes_that_end_a_literal_or_comment_are_refused(text):
    with pytest.raises(InputError, match=r"line 2: "):
        rewrite(f"class A {{ void f(int n, String s) {{\n{text} }} }}", "java")


def test_harmless_escapes_are_read():
    body = r"""char c = '\u0022', d = '\u0000'; return "\\u0022 \u00e9" + c + d; // \u0022"""
    source = f"class A {{ String f() {{ {body}\n }} }}"
    assert rewrite(source, "java").counts["rename-variable"] == 2
