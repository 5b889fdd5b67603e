"""Tree edit distance, and the syntax trees that it compares."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.code.tree_distance import OrderedTree, syntax_tree, tree_edit_distance


def tree(nested):
    """Make a tree from nested lists; each list has a label and then the subtrees."""
    labels, sizes = [], []

    def add(node):
        size = 1 + sum(add(child) for child in node[1:])
        labels.append(node[0])
        sizes.append(size)
        return size

    add(nested)
    return OrderedTree(labels, sizes)


def reference_distance(a, b):
    """Compute the tree edit distance by its recursive definition, which is simple but slow."""

    def frozen(node):
        return node[0], tuple(map(frozen, node[1:]))

    def size(forest):
        return sum(1 + size(children) for _, children in forest)

    @cache
    def distance(left, right):
        if not left or not right:
            return size(left) + size(right)
        (a, inside_a), (b, inside_b) = left[-1], right[-1]
        return min(
            distance(left[:-1] + inside_a, right) + 1,
            distance(left, right[:-1] + inside_b) + 1,
            distance(left[:-1], right[:-1]) + distance(inside_a, inside_b) + (a != b),
        )

    return distance((frozen(a),), (frozen(b),))


labels = st.sampled_from("ab")
trees = st.recursive(
    labels.map(lambda label: [label]),
    lambda inner: st.tuples(labels, st.lists(inner, max_size=3)).map(lambda node: [node[0], *node[1]]),
    max_leaves=6,
)


@given(trees, trees)
@settings(max_examples=300)
def test_distance_equals_its_recursive_definition(a, b):
    assert tree_edit_distance(tree(a), tree(b)) == reference_distance(a, b)


@given(trees, trees, trees)
@settings(max_examples=100)
def test_distance_is_a_metric(a, b, c):
    a, b, c = map(tree, (a, b, c))
    assert tree_edit_distance(a, a) == 0
    assert tree_edit_distance(a, b) == tree_edit_distance(b, a)
    assert tree_edit_distance(a, c) <= tree_edit_distance(a, b) + tree_edit_distance(b, c)


@given(trees, trees)
def test_mirrored_trees_have_the_same_distance(a, b):
    a, b = tree(a), tree(b)
    assert a.mirrored().mirrored() == a
    assert tree_edit_distance(a.mirrored(), b.mirrored()) == tree_edit_distance(a, b)


def test_distances_of_the_reference_vectors(shared):
    for case in json.loads((shared / "reference" / "code-metrics.json").read_text())["trees"]:
        assert tree_edit_distance(tree(case["a"]), tree(case["b"])) == case["distance"]


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_large_trees(shape):
    count = 2000
    sizes = range(1, count + 1) if shape == "chain" else [1] * (count - 1) + [count]
    first, second = (OrderedTree([f"{i % k}" for i in range(count)], list(sizes)) for k in (7, 11))
    equal = sum(i % 7 == i % 11 for i in range(count))
    assert 0 < tree_edit_distance(first, second) <= count - equal


def test_table_of_forest_distances_is_split(monkeypatch):
    """If the table is too large for the memory, its columns are computed in parts, with the same result."""
    first = syntax_tree("def f(a, b):\n    return [a, b, (a, b)] + g(a)[b]\n", "python")
    second = syntax_tree("def f(a, c):\n    if a:\n        return g(c, a)[b] + [(a, b), c]\n", "python")
    expected = tree_edit_distance(first, second)
    monkeypatch.setattr("simllm.code.tree_distance._LARGEST", 100)
    assert tree_edit_distance(first, second) == expected > 5


def test_syntax_tree_has_names_and_operators():
    found = syntax_tree("a = b + 1  # note\n", "python")
    assert found.labels == [
        "identifier a", "= =", "identifier b", "+ +", "integer 1",
        "binary_operator", "assignment", "expression_statement", "module",
    ]  # fmt: skip
    assert found.sizes == [1, 1, 1, 1, 1, 4, 7, 8, 9]


def test_syntax_tree_ignores_white_space_and_comments():
    assert syntax_tree("f ( )", "python") == syntax_tree("f()", "python")
    assert syntax_tree("if a not in b:\n  c", "python").labels.count("not in notin") == 1
