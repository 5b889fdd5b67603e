"""Ordered trees with a label for each node, stored as lists."""

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
        """Return the children of a node, as node numbers, from left to right."""
        # The last child is the node before its parent, and each subtree fills the numbers before its root.
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
