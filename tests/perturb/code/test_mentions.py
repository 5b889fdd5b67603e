"""Names in documentation follow renamed functions and parameters."""

import ast

from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.perturb.code import restore, rewrite

JAVA = """/** Counts; see {@link #total(int)} and {@link Other#total}. */
class A {
    /**
     * Adds {@code n} to {@code n - 1}; see {@link #total}, {@link A#total(int) it}, {@code x.n},
     * {@code n()}.
     * {@code total} calls {@code total(n - 1)}, <code>n</code>, n.
     * @param n the number
     * @see #total(int)
     */
    private int total(int n) { return n < 2 ? n : total(n - 1); }
    /* {@link #total} */
    int other() { return total(3); }
    static class B {
        /** {@link #total} {@code total(3)} */
        int total(int k) { return k; }
    }
}
"""


def test_javadoc_follows_methods_and_parameters():
    found = rewrite(JAVA, "java", ["rename-function", "rename-parameter"], {"total": "whole", "n": "count"})
    assert (
        found.text
        == """/** Counts; see {@link #whole(int)} and {@link Other#total}. */
class A {
    /**
     * Adds {@code count} to {@code count - 1}; see {@link #whole}, {@link A#whole(int) it}, {@code x.n},
     * {@code n()}.
     * {@code whole} calls {@code whole(count - 1)}, <code>count</code>, n.
     * @param count the number
     * @see #whole(int)
     */
    private int whole(int count) { return count < 2 ? count : whole(count - 1); }
    /* {@link #total} */
    int other() { return whole(3); }
    static class B {
        /** {@link #total} {@code total(3)} */
        int total(int k) { return k; }
    }
}
"""
    )


def test_the_documentation_of_a_single_method_follows():
    source = "/** {@link #run(int)} of {@code n}. */\nint run(int n) { return n; }"
    found = rewrite(source, "java", names={"run": "start", "n": "count"})
    assert (
        found.text == "/** {@link #start(int)} of {@code count}. */\nint start(int count) { return count; }"
    )


PYTHON = '''def total(n, base):
    """Add up; see :func:`total`, :py:func:`~total`, :func:`the sum <total>`, ``total(n)``, `n`.

    :param n: the number, not :attr:`n` or ``x.n``
    :param int base: the ``n`` of :meth:`other.total`
    """
    # See :func:`total()`.
    return total(n - 1, base)
'''


def test_docstrings_follow_functions_and_parameters():
    found = rewrite(
        PYTHON, "python", ["rename-function", "rename-parameter"], {"total": "whole", "n": "count"}
    )
    assert (
        found.text
        == '''def whole(count, base):
    """Add up; see :func:`whole`, :py:func:`~whole`, :func:`the sum <whole>`, ``whole(count)``, `count`.

    :param count: the number, not :attr:`n` or ``x.n``
    :param int base: the ``count`` of :meth:`other.total`
    """
    # See :func:`whole()`.
    return whole(count - 1, base)
'''
    )


def test_docstrings_that_code_reads_stay():
    source = 'def f(n):\n    """`n` of :func:`f`"""\n    return f.__doc__, n\n'
    found = rewrite(source, "python", names="plain")
    assert '"""`n` of :func:`f`"""' in found.text


PARTS = st.lists(
    st.sampled_from(
        ["{@code ", "}", "{@link #", "`", "``", ":func:`", "total", "n", " ", "(n)", "@param n ", "<code>",
         "</code>", "{", "#", ".", "\\", "é", "\n     ", "~", "<", ">", ":param n:", "Args:\n        n: x\n"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(PARTS)
def test_any_documentation_leaves_the_code_and_can_be_restored(text):
    names = {"total": "whole", "n": "count"}
    source = f'def total(n):\n    r"""{text}\n    """\n    return total(n - 1)\n'
    found = rewrite(source, "python", names=names)
    assert restore(found.text, found.names) == source
    before, after = (
        ast.dump(ast.parse(code).body[0].body[-1]) for code in (source, restore(found.text, found.names))
    )
    assert before == after
    source = f"/** {text} */\nint total(int n) {{ return total(n - 1); }}"
    found = rewrite(source, "java", names=names)
    assert found.names == names
    assert restore(found.text, found.names) == source
