"""Broken claims of comments: what each rule finds in each language, and what it leaves alone."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.analysis.comment_check.documentation import read_documentation
from simllm.analysis.comment_check.functions import documented_functions
from simllm.analysis.comment_check.rules import broken_by_change, broken_now, is_cosmetic
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, load_language
from simllm.code.normal_form import code_tokens


def function(code, language="python"):
    [found] = documented_functions(code.encode(), language)
    return found.read()


def now(code, language="python"):
    return [(broken.rule, broken.claim.value) for broken in broken_now(function(code, language))]


def after(old, new, language="python"):
    code = new.encode()
    root = load_language(language).parse(code)
    words = {token.decode() for token, *_ in code_tokens(root, code, language)}
    changed = broken_by_change(function(old, language), function(new, language), words.__contains__)
    return [(broken.rule, broken.claim.value) for broken in changed]


PIECES = [
    "\n",
    "    ",
    "Args:",
    "Parameters",
    "----",
    "@param ",
    "{@code x}",
    ":raises ",
    "Returns:",
    "`a_b`",
    " 30",
]
PIECES += [
    '"""',
    "/**",
    " * ",
    "*/",
    "# ",
    "// ",
    "@return ",
    "$a",
    "[b=5]",
    "{Map<",
    ":param x: y",
    "default 5",
    "'x'",
]
UNKNOWN = {
    "python": ['def f(a):\n    """Add.\n\n    :param a: x\n    :param int b: y\n    """\n    return a\n',
               'def f(a):\n    """Add.\n\n    Args:\n'
               '        a (int): x\n        b: y\n    """\n    return a\n',
               'def f(a):\n    """Add.\n\n    Parameters\n    ----------\n'
               '    a, b : int\n        x\n    """\n    return a\n'],
    "java": ["class A { /** Add. @return x\n * @param a x\n"
             " * @param b y\n */ int f(final int a) { return a; } }"],
    "javascript": ["/**\n * Add.\n * @param {Map<a, {b: 1}>} a x\n"
                   " * @param {number} [b=5] y\n */\nconst f = (a) => a;"],
    "typescript": ["/**\n * Add.\n * @param a x\n * @param b y\n"
                   " */\nfunction f(a?: string): string { return a; }"],
    "php": ["<?php\n/**\n * Add.\n * @param array<int, string> $a x\n"
            " * @param ?int $b y\n */\nfunction f(array &$a) { return $a; }"],
    "ruby": ["# Add.\n# @param [Integer] a x\n# @param b [String] y\ndef f(a)\n  a\nend\n"],
    "cpp": ["/**\n * Add.\n * @param[in] a x\n * \\param b y\n */\nint f(const int &a) { return a; }"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "code"), [(language, code) for language, codes in UNKNOWN.items() for code in codes]
)
def test_unknown_parameter(language, code):
    assert now(code, language) == [("unknown-parameter", "b")]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", 'def f(a, **options):\n    """:param b: x"""\n    return options\n'),
        (
            "python",
            'class A:\n    @property\n    def f(self):\n        """:param b: x"""\n        return g\n',
        ),
        ("python", 'def f(a):\n    """:param b: x"""\n    def g(b):\n        return b\n    return g\n'),
        ("python", 'def f(a):\n    """:keyword b: x"""\n    return a\n'),
        ("javascript", "/** @param {Object} b x */\nfunction f({a}) { return a; }"),
        ("javascript", "/** @param a.b x\n * @param a x */\nfunction f(a) { return a; }"),
        ("javascript", "/** @param b x */\nfunction f() { return arguments[0]; }"),
        ("javascript", "/**\n * @callback Done\n * @param b x\n */\nfunction f() { return 1; }"),
        ("java", "class A { /** @param <T> x\n * @param a y */ <T> T f(T a) { return a; } }"),
        ("php", "<?php /** @param $b x */ function f() { return func_get_args(); }"),
        ("cpp", "/** @param T x\n * @param a y */ template <typename T> T f(T a);"),
        ("cpp", "/** @param b x */ int f(int);"),
        ("ruby", "# @param b x\ndef f(a, *rest)\nend\n"),
        ("go", "package a\n\n// F adds. @param b x\nfunc F(a int) int { return a }\n"),
        ("python", 'def f(_, a):\n    """:param b: Not used."""\n    return a\n'),
        ("typescript", "/** @param b x */\nfunction f(_b: number) { return 1; }"),
        ("javascript", "class A {\n  /** @param b x */\n  onMove() {}\n}"),  # for those that override it
    ],
)
def test_parameters_that_may_exist(language, code):
    assert now(code, language) == []


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ("size (int): x. Defaults to 10.", True),
        ("size (int): x (default: 10)", True),
        ("size (int): x, default=10.0", True),
        ("size (int): x. Defaults to 20.", False),
        ("size (int): x. Defaults to 20.0", False),
        ("size (int): x. The default 10 if fast, the default 20 else", False),
        ('size (int): "default" : "a"', False),
        ("size (int): x. Defaults to ten.", False),
        ('size (int): x. Defaults to "20".', False),  # some authors quote all values
        ('size (int): x. Defaults to "10".', True),
        ("size (int): x. Default version 10.2.1", False),
    ],
)
def test_documented_default(code, broken):
    found = now(f'def f(size=20):\n    """Get.\n\n    Args:\n        {code}\n    """\n    return size\n')
    assert found == [("changed-default", "size")] * broken


def test_none_stands_for_a_default_that_the_body_chooses():
    assert now('def f(size=None):\n    """:param size: x. Defaults to 10."""\n    return size or 10\n') == []


RETURNS = {
    "python": ('def f(a):\n    """Get.\n\n    :return: x\n    """\n    {}\n', "a.b()", "return a"),
    "java": ("class A {{ /** Get.\n * @return x */ {} }}", "void f() { g(); }", "int f() { return g(); }"),
    "javascript": ("/** Get.\n * @returns {{number}} x */\n"
                   "function f() {{ {} }}", "g(() => { return 1; });", "return 1;"),
    "typescript": ("/** Get.\n * @returns x */\nfunction f(){}", ": void { g(); }", ": number { return 1; }"),
    "php": ("<?php\n/** Get.\n * @return int */\nfunction f() {{ {} }}", "g();", "return g();"),
    "cpp": ("/** Get.\n * @return x */\n{}", "void f() { g(); }", "void *f() { return g(); }"),
}  # fmt: skip


@pytest.mark.parametrize("language", RETURNS)
def test_missing_return(language):
    code, without, with_ = RETURNS[language]
    assert now(code.format(without), language) == [("missing-return", "")]
    assert now(code.format(with_), language) == []


@pytest.mark.parametrize(
    "body", ["raise NotImplementedError", "pass", "yield a", "...", "# nothing\n    pass"]
)
def test_bodies_that_do_not_tell_what_is_returned(body):
    assert now(f'def f(a):\n    """Get.\n\n    :return: x\n    """\n    {body}\n') == []


@pytest.mark.parametrize("said", ["None", "Nothing.", "void", "{void}", "{Promise<void>} when done"])
def test_nothing_is_documented_as_returned(said):
    assert now(f"/** Do.\n * @returns {said} */\nfunction f() {{ g(); }}", "javascript") == []


def test_go_comment_names_another_function():
    code = "package a\n\n// {} returns the size.\nfunc GetLength() int {{ return 1 }}\n"
    assert now(code.format("GetSize"), "go") == [("other-name", "GetSize")]
    assert now(code.format("GetLength"), "go") == now(code.format("Length"), "go") == []


def documented(body, arguments="a", more=""):
    return (
        f'def f({arguments}):\n    """Get the `first_item` after 30 seconds, at most.{more}"""\n    {body}\n'
    )


@pytest.mark.parametrize(
    ("old", "new", "broken"),
    [
        ("wait(30)\n"
         "    return first_item(a)", "wait(60)\n    return first_item(a)", [("missing-value", "30")]),
        ("wait(30)\n    return first_item(a)", "wait(TIME)\n    return first_item(a)", []),
        ("wait(30)\n    return first_item(a)", "pause()\n    return first_item(a)", []),
        ("wait(30)\n"
         "    return first_item(a)", "wait(30)\n    return last(a)", [("missing-value", "first_item")]),
        ("return first_item(a)", "return g(a)\n\ndef g(a):\n    return first_item(a)", []),
        ("b = first_item(a)\n    return b", "c = first_item(a)\n    return c", []),
        ("return first_item( a )  # x", "return first_item(a)", []),
    ],
)  # fmt: skip
def test_values_that_a_change_replaces(old, new, broken):
    assert after(documented(old), documented(new)) == broken


def test_parameter_that_a_change_renames_or_adds():
    more = "\n\n    :param a: x\n    :param b: y\n    "
    old, renamed = documented("return a", "a, b", more), documented("return a", "a, c", more)
    assert after(old, renamed) == [("unknown-parameter", "b")]
    assert after(old, documented("return a", "a, b, c=1", more)) == [("undocumented-parameter", "c")]
    assert after(old, documented("return a", "a, b, _c=1", more)) == []
    # Not all parameters were documented before.
    assert after(documented("return a", "a, b, d", more), documented("return a", "a, b, c, d", more)) == []


def test_tags_that_only_repeat_types_are_no_description():
    old = "<?php\n/** @param Foo $a{} */\nfunction f(Foo $a) {{ return 1; }}"
    new = old.replace("$a)", "$a, bool $b)")
    assert after(old.format(""), new.format(""), "php") == []
    assert after(old.format(" the x"), new.format(" the x"), "php") == [("undocumented-parameter", "b")]


@pytest.mark.parametrize("language", sorted(set(LANGUAGE_OF_SUFFIX.values())))
@given(comment=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join))
def test_every_comment_can_be_read(language, comment):
    lines = read_documentation(comment, language).lines
    for claim in read_documentation(comment, language).claims:
        assert 0 <= claim.line < len(lines)
        assert "\n" not in claim.sentence


def test_exception_that_is_no_longer_raised():
    more = "\n\n    :raises ValueError: if a is empty\n    "
    old = documented("if not a: raise ValueError(a)\n    return a", more=more)
    assert after(old, documented("return a or 1", more=more)) == [("missing-exception", "ValueError")]
    assert after(old, documented("check(a)\n    return a", more=more)) == []


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("Raises ValueError if a is not positive.", ["ValueError"]),
        ("If not found, raise a ``ValueError``.", ["ValueError"]),
        ("Throws :exc:`~builtins.ValueError` otherwise.", ["ValueError"]),
        ("Raises TypeError, a KeyError or\n    ValueError.", ["ValueError"]),
        ("A ValueError is raised for 0.", ["ValueError"]),
        (r"A \lib\ValueError is raised for 0.", ["ValueError"]),
        ("Does not raise ValueError.", []),
        ("It doesn't raise a ValueError.", []),
        ("It doesn\u2019t raise a ValueError.", []),
        ("A unit of zero raises ValueError.", ["ValueError"]),
        ("Never raises TypeError or ValueError.", []),
        ("Returns None instead of raising ValueError.", []),
        ("No ValueError is raised.", []),
        ("See ValueError.", []),
        ("Raises an error.", []),
        (">>> f(0)  # raises ValueError", []),
    ],
)
def test_exception_in_prose(prose, expected):
    more = f"\n\n    {prose}\n    "
    old = documented("if not a: raise ValueError(a)\n    return a", more=more)
    found = after(old, documented("return a or 1", more=more))
    assert found == [("missing-exception", name) for name in expected]
    assert after(old, documented("if a < 1: raise ValueError(a)\n    return a", more=more)) == []
    assert now(documented("return a or 1", more=more)) == []


@pytest.mark.parametrize("part", ["Ab", "`", "a.", "A.B", "~!", "A`", "a\\"])
def test_long_words_are_read_at_once(part):
    """A search that starts at each letter would take minutes."""
    start = time.process_time()
    read_documentation(part * 40_000, "python")
    assert time.process_time() - start < 5


def test_what_was_wrong_before_is_no_news():
    more = "\n\n    :param b: x\n    "
    assert now(documented("return a", more=more)) == [("unknown-parameter", "b")]
    assert after(documented("return a", more=more), documented("return a + 1", more=more)) == []


@pytest.mark.parametrize(
    ("language", "old", "new", "same"),
    [
        ("python", 'def f(a):\n    """D."""\n    return a', 'def f(a: int) -> int:\n'
                                                            '    """E."""\n    return (a)', True),
        ("python", 'def f(a):\n    """D."""\n    return a', 'def f(a):\n    """D."""\n    return -a', False),
        ("java", "class A { /** D */ int f() { int a = g(); return a; } }",
         "class A { /** D */ @Override int f()\n{ final int b = g(); return b; } }", True),
        ("java", "class A { /** D */ int "
                 "f() { return g(); } }", "class A { /** D */ int f() { return h(); } }", False),
        ("java", "class A { /** D */ int "
                 "f() { return a.b; } }", "class A { /** D */ int f() { return a.c; } }", False),
        ("javascript", "/** D */\nfunction f() { var a = 'x'; return a }",
         '/** D */\nfunction f() { const a = "x"; return a; }', True),
    ],
)  # fmt: skip
def test_cosmetic_changes(language, old, new, same):
    assert is_cosmetic(function(old, language), function(new, language)) is same
