"""Rare Python code that the rules have to leave, or to rewrite with care."""

import re
import time

import pytest

from simllm.perturb.code import rewrite
from simllm.perturb.code.python.rules import RULES
from simllm.perturb.code.rules import RENAMES

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")
EVERY = [*RENAMES, *RULES.structural]


def longer(name, kind, values):
    return [f"new_{name}"]


def run(source, call, entry):
    """Run a call of `f`, which is named `entry` in the source; return the result or the exception's type."""
    module = {"__name__": "unit"}
    exec(compile(source.encode(), "<code>", "exec", dont_inherit=True), module)
    try:
        return repr(eval(re.sub(r"\bf\b", entry, call), module))
    except Exception as error:
        return type(error).__name__


def reasons(source, rule):
    return {place.reason for place in rewrite(source, "python", [rule], longer).skipped}


KEEP_BEHAVIOUR = {
    "a backslash before an empty line, in a loop": (
        "def f(n):\n    for i in range(n):\n        x = i \\\n\n    return x\n",
        "f(3)",
    ),
    "a backslash before an empty line, in an if": (
        "def f(n):\n    if n:\n        x = 1 \\\n\n    else:\n        x = 2; \\\n    # c\n\n    return x\n",
        "f(3)",
    ),
    "a backslash at the end of the code": (
        "def f(n):\n    if n:\n        return 1\n    else:\n        return 2 \\\n\n",
        "f(3)",
    ),
    "a float as the step": ("def f():\n    for i in range(0, 5, 1e0): print(i)\n", "f()"),
    "braces in f-strings": (
        'def f(n):\n    return f"{3 == {1, n}} {3 != {1: n}[1]} {2 < {n: 5}[n]} { {n} == 3}"\n',
        "f(3)",
    ),
    "a docstring in parentheses": ('def f(n):\n    ("doc" "more")\n    return n\n', "f.__doc__"),
    "names of code objects": (
        "def f():\n    def g():\n        secret = 1\n    return g.__code__.co_varnames\n",
        "f()",
    ),
    "names of frames": (
        "import sys\ndef show(x): return sys._getframe(1).f_locals[x]\n"
        "def f():\n    y = 1\n    return show('y')\n",
        "f()",
    ),
    "another name for eval": (
        "def f(a):\n    def g(e):\n        b = a\n        return e('b')\n    return g(eval)\n",
        "f(1)",
    ),
    "another name for locals": ("l = locals\ndef f(a):\n    b = 2\n    return l()\n", "f(1)"),
    "eval of builtins": ("import builtins\ndef f(a):\n    return builtins.eval('a')\n", "f(1)"),
    "a private name that becomes the variable": (
        "def f(x):\n    _B__y = 5\n    class B:\n        def go(self): return __y\n    return B().go(), x\n",
        "f(3)",
    ),
    "a parameter that except deletes": (
        "def f(x):\n    try: 1 / 0\n    except ZeroDivisionError as x: pass\n    return x is y\n",
        "f(3)",
    ),
    "a decorator that reads names before a slash": (
        "def deco(g):\n    import inspect\n    return lambda x: str(inspect.signature(g))\n"
        "def f():\n    @deco\n    def g(x, /): return x\n    return g(1)\n",
        "f()",
    ),
    "names before a slash that are read": (
        "import inspect\ndef f():\n    def g(x, /): return x\n    return str(inspect.signature(g))\n",
        "f()",
    ),
    "names of functions that getattr reads": (
        "def f(x):\n    def g(): pass\n    return getattr(g, '__name__')\n",
        "f(3)",
    ),
    "a name that a call beginning with type reads": (
        "class C:\n    def g(self): pass\ndef f(x):\n    return type(C()).g.__name__\n",
        "f(3)",
    ),
    "a global that code binds": (
        "def f(n):\n    return [i for i in range(n)]\nglobals()['range'] = lambda n: 'xy'\n",
        "f(3)",
    ),
    "a line that would name the encoding": ("# a\n# b\n# coding: latin-1\ndef f():\n    return 'é'\n", "f()"),
    "a branch that declares a global": (
        "def f(a):\n    if a:\n        global x\n        x = 1\n    else:\n        x = 2\n    return x\n",
        "f(3)",
    ),
    "a byte order mark": (
        "\ufeffif 1 == 0: x = 1\nelif 0 < 2: x = 2\nelse: x = 3\ndef f(): return x\n",
        "f()",
    ),
}


@pytest.mark.parametrize(("source", "call"), KEEP_BEHAVIOUR.values(), ids=KEEP_BEHAVIOUR)
def test_rare_code_keeps_its_behaviour(source, call):
    expected = run(source, call, "f")
    for rules in ([rule] for rule in EVERY):
        for share, seed in ((1, 0), (0.5, 1), (0.5, 2)):
            found = rewrite(source, "python", rules, longer, share=share, seed=seed)
            assert run(found.text, call, found.names.get("f", "f")) == expected, found.text
    found = rewrite(source, "python", EVERY, longer)
    assert run(found.text, call, found.names.get("f", "f")) == expected, found.text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "return self.f(**{'w': 2})",
            "a call of an attribute of the same name passes the parameter by its name",
        ),
        ("return self.f(w=2)", "a call of an attribute of the same name passes the parameter by its name"),
        ("return partial(self.f, w=2)()", "an attribute of the same name is used without being called"),
        ("return super().f(w=w)", None),
    ],
)
def test_calls_of_a_method_hold_its_parameters(body, reason):
    found = reasons(f"def f(self, w=1):\n    {body}\n", "rename-parameter")
    assert found == {"the name has a meaning of its own"} | ({reason} if reason else set())


def test_an_example_holds_names():
    source = 'def f(n, k=1):\n    """Add.\n\n    >>> f(1, k=2)\n    3\n    """\n    return n + k\n'
    assert rewrite(source, "python", ["rename-parameter", "rename-function"], longer).names == {"n": "new_n"}


def test_a_query_of_a_table_holds_names():
    source = "def f(table):\n    low = 3\n    high = 4\n    return table.query('price > @low'), high\n"
    assert rewrite(source, "python", ["rename-variable"], longer).names == {"high": "new_high"}


def test_a_function_that_the_unit_makes_global_stays():
    source = "def f():\n    global g\n    def g(): return 1\n    return g() + h()\n"
    assert rewrite(source, "python", ["rename-function"], longer).names == {"f": "new_f"}


@pytest.mark.parametrize("new", ["__x", "\ufb01le", "file", "sum", "match", "a b"])
def test_new_names_mean_themselves_and_are_free(new):
    source = "def f(x):\n    \ufb01le = x\n    return \ufb01le\n"
    assert rewrite(source, "python", ["rename-parameter"], {"x": new}).names == {}


@pytest.mark.parametrize(
    "value",
    ["max(1, len(xs))", "abs(-2)", "1 if xs else ord('a')", "int(xs)", "len(xs) or 1", "id(xs)"],
)
def test_integers_that_builtins_return_are_known(value):
    found = rewrite(
        f"def f(xs):\n    n = {value}\n    n += 1\n    return n\n", "python", ["expand-increment"]
    )
    assert found.counts["expand-increment"] == 1


@pytest.mark.parametrize(
    "value",
    [
        "max(xs, [1])",
        "max(1, *xs)",
        "min(1, 2, key=xs)",
        "xs or 1",
        "1 if xs else [1]",
        "True and xs",
        "sum(xs)",
    ],
)
def test_values_that_may_be_no_integers_stay(value):
    found = rewrite(
        f"def f(xs):\n    n = {value}\n    n += 1\n    return n\n", "python", ["expand-increment"]
    )
    assert found.counts["expand-increment"] == 0


@pytest.mark.parametrize(
    ("head", "rewritten"),
    [
        ("for i, x in enumerate(xs)", True),
        ("for i, *x in enumerate(xs, 1)", True),
        ("for i, x in enumerate(xs, flag)", False),
        ("for x, i in enumerate(xs)", False),
        ("for i, x in zip(xs, xs)", False),
    ],
)
def test_loops_from_the_number_of_enumerate(head, rewritten):
    source = f"def f(xs, flag):\n    {head}:\n        for j in range(i, 9): print(j)\n"
    assert ("while" in rewrite(source, "python", ["for-to-while"]).text) == rewritten


def test_continue_in_with_comes_after_the_update():
    source = "def f(n, c):\n    for i in range(n):\n        with c:\n            continue\n"
    assert (
        "with c:\n            i += 1\n            continue"
        in rewrite(source, "python", ["for-to-while"]).text
    )


def test_names_that_only_look_like_readers_of_names():
    source = "def f(model, dir):\n    model.eval()\n    found = vars(model)\n    return found, dir\n"
    found = rewrite(source, "python", ["rename-parameter", "rename-variable"], longer)
    assert list(found.names) == ["model", "dir", "found"]


def test_descriptions_follow_parameters():
    source = '''def f(x, y, n, *rest, **more):
    """Add.

    :param x: x is first
    :type y: x

    Parameters
    ----------
    x, y : int
        x is a number.
    n
        Another.
    *rest :
        n : int

    Returns
    -------
    n : int

    Args:
        x (int): x.
        **more: n: x
    """
    return x, y, n, rest, more
'''
    found = rewrite(source, "python", ["rename-parameter"], lambda name, kind, values: [name.upper()]).text
    assert (
        found
        == '''def f(X, Y, N, *REST, **MORE):
    """Add.

    :param X: x is first
    :type Y: x

    Parameters
    ----------
    X, Y : int
        x is a number.
    N
        Another.
    *REST :
        n : int

    Returns
    -------
    n : int

    Args:
        X (int): x.
        **MORE: n: x
    """
    return X, Y, N, REST, MORE
'''
    )


def test_new_names_differ_from_those_of_other_rules():
    source = "def f(n):\n    end = 5\n    for i in range(n):\n        end += i\n    return end\n"
    rules = ["for-to-while", "rename-variable"]
    assert rewrite(source, "python", rules, {"end": "stop"}).names == {}


def test_types_in_strings_hold_names_of_all_alphabets():
    source = "def f(größe):\n    maß = größe\n    x: 'list[maß]' = maß\n    return x\n"
    assert rewrite(source, "python", ["rename-variable"], longer).names == {"x": "new_x"}


def test_long_names_take_linear_time():
    started = time.process_time()
    rewrite(f"def f(n):\n    {50_000 * '_'}x{50_000 * '_'} = n\n    return n\n", "python", EVERY, longer)
    assert time.process_time() - started < 20
