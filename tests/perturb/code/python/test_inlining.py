"""Names in comprehensions are also found in Python 3.12, where comprehensions have no symbol table."""

import symtable

import pytest

from simllm.perturb.code import rewrite

COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp")


def passes_through(symbol):
    """Return whether a name only passes through a scope: inner scopes use it, but not the scope itself."""
    return symbol.is_free() and not symbol.is_referenced()


class InlinedTable:
    """A symbol table in which comprehensions are part of the surrounding scope, as in Python 3.12."""

    def __init__(self, table):
        self.get_name, self.get_type, self.get_lineno = table.get_name, table.get_type, table.get_lineno
        self.symbols = {symbol.get_name(): symbol for symbol in table.get_symbols()}
        self.children = []
        for child in map(InlinedTable, table.get_children()):
            if child.get_name() in COMPREHENSIONS:
                self.children += child.children
                own = {name for name, symbol in self.symbols.items() if not passes_through(symbol)}
                self.symbols |= {name: s for name, s in child.symbols.items() if name not in own | {".0"}}
            else:
                self.children.append(child)

    def get_children(self):
        return self.children

    def get_symbols(self):
        return list(self.symbols.values())

    def get_identifiers(self):
        return list(self.symbols)

    def lookup(self, name):
        return self.symbols[name]


@pytest.fixture
def inlined(monkeypatch):
    original = symtable.symtable
    monkeypatch.setattr(symtable, "symtable", lambda *arguments: InlinedTable(original(*arguments)))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "def f(x, t): return [x + t for x in range(x)] + [x]\n",
            "def f(new_x, new_t): return [new_x + new_t for new_x in range(new_x)] + [new_x]\n",
        ),
        (
            "def f(xs):\n    a = [(y := x) for x in xs]\n    return a, y, {z: lambda: z for z in xs}\n",
            "def f(new_xs):\n    new_a = [(new_y := new_x) for new_x in new_xs]\n"
            "    return new_a, new_y, {new_z: lambda: new_z for new_z in new_xs}\n",
        ),
        (
            "def f(k, xs):\n    class A:\n        k = 1\n        m = [k for x in xs]\n    return A.m, k\n",
            "def f(k, new_xs):\n    class A:\n        k = 1\n        m = [k for new_x in new_xs]\n"
            "    return A.m, k\n",
        ),
        (  # the table of g says that y belongs to g
            "def f(y, xs):\n    def g(): return [y for y in xs], [y for _ in xs]\n    return g()\n",
            "def f(y, new_xs):\n    def new_g(): return [y for y in new_xs], [y for _ in new_xs]\n"
            "    return new_g()\n",
        ),
        (
            "def f(w, xs):\n    def g():\n        a = [(x := w) for w in xs]\n        def h(): return w\n",
            "def f(w, new_xs):\n    def new_g():\n        new_a = [(new_x := w) for w in new_xs]\n"
            "        def new_h(): return w\n",
        ),
    ],
)
def test_names_in_inlined_comprehensions_are_found(inlined, source, expected):
    rules = ["rename-parameter", "rename-variable", "rename-function"]
    found = rewrite(
        source, "python", rules, lambda name, kind, values: [f"new_{name}"] if name != "f" else []
    )
    assert found.text == expected


def test_a_loop_whose_variable_a_comprehension_reads_is_rewritten(inlined):
    source = "def f(n, m):\n    for i in range(n):\n        m += [i * k for k in m]\n"
    assert "while i < stop" in rewrite(source, "python", ["for-to-while"]).text
