"""Ordered labelled trees, stored as lists, and operations that prepare trees for the tree edit distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class OrderedTree:
    """A tree whose nodes are numbered in postorder: each node comes after its children, and the root is last.

    Attributes:
        labels: The label of each node, indexed by node number (from 0).
        sizes: For each node, the number of nodes in its subtree, including the node itself.
    """

    labels: Sequence[str]
    sizes: Sequence[int]

    def __len__(self) -> int:
        return len(self.labels)

    def children(self, node: int) -> list[int]:
        """Return the numbers of the children of a node, from left to right."""
        found, first, child = [], node - self.sizes[node] + 1, node - 1
        while child >= first:
            found.append(child)
            child -= self.sizes[child]
        return found[::-1]

    def mirrored(self) -> OrderedTree:
        """Return the mirror image of the tree: the children of every node in reverse order."""
        order, stack = [], [len(self) - 1]
        while stack:  # visits each node before its children, and the children from left to right
            order.append(node := stack.pop())
            stack += reversed(self.children(node))
        order.reverse()
        return OrderedTree([self.labels[node] for node in order], [self.sizes[node] for node in order])


Forest = list[int]  # the roots of neighbouring subtrees, from left to right


def remove_common(a: OrderedTree, b: OrderedTree) -> tuple[Forest, Forest]:
    """Remove equal parts of two trees, so that their edit distance can be computed faster.

    If the roots have equal labels, both roots are removed. What remains of each tree is a forest: the list of
    the trees below its root. Equal trees at the beginning or at the end of both forests are removed, too. If
    each forest is then a single tree, the roots of these two trees are compared in the same way, and so on.

    The removal does not change the edit distance if insertion, deletion and relabelling of a node each cost
    1. There is then always a cheapest edit that leaves the equal parts unchanged.

    Args:
        a: A tree.
        b: Another tree.

    Returns:
        The remaining forest of `a`, and that of `b`. Each forest is the list of its roots, as node numbers.
        Both forests are empty if `a` and `b` are equal.
    """
    numbers: dict[tuple[str, tuple[int, ...]], int] = {}
    shapes_a, shapes_b = (_number_subtrees(tree, numbers) for tree in (a, b))
    left, right = [len(a) - 1], [len(b) - 1]
    while True:
        start, end = 0, min(len(left), len(right))
        while start < end and shapes_a[left[start]] == shapes_b[right[start]]:
            start += 1
        left, right, end = left[start:], right[start:], end - start
        kept = 0
        while kept < end and shapes_a[left[-1 - kept]] == shapes_b[right[-1 - kept]]:
            kept += 1
        left, right = left[: len(left) - kept], right[: len(right) - kept]
        if not (len(left) == len(right) == 1 and a.labels[left[0]] == b.labels[right[0]]):
            return left, right
        left, right = a.children(left[0]), b.children(right[0])


def _number_subtrees(tree: OrderedTree, numbers: dict[tuple[str, tuple[int, ...]], int]) -> list[int]:
    """Assign a number to the subtree of each node, such that only equal subtrees have the same number.

    Args:
        tree: The tree.
        numbers: A dict of the numbers that are already assigned. The key for a subtree is the label of its
            root, and the numbers of the subtrees of the root's children. New subtrees are added to the dict.
            If the calls for two trees get the same dict, the subtrees of both trees can be compared.

    Returns:
        The number of the subtree of each node.
    """
    found: list[int] = []
    for node, label in enumerate(tree.labels):
        key = (label, tuple(found[child] for child in tree.children(node)))
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def join(tree: OrderedTree, forest: Forest) -> OrderedTree:
    """Join the trees of a forest below a new root with an empty label.

    Args:
        tree: The tree that contains the forest.
        forest: The nodes of `tree` that are the roots of the forest.

    Returns:
        The joined tree.
    """
    labels: list[str] = []
    sizes: list[int] = []
    for node in forest:
        nodes = slice(node - tree.sizes[node] + 1, node + 1)
        labels += tree.labels[nodes]
        sizes += tree.sizes[nodes]
    return OrderedTree([*labels, ""], [*sizes, len(sizes) + 1])
