"""Paths in a syntax tree: the nodes from the root to the node at a given byte of the source."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

NodePath = Sequence[Node]  # the ancestors of a node, from the root, and the node itself


class TreeCursor:
    """Cursor that finds the innermost syntax node at a byte offset, and the nodes above it.

    For increasing offsets, each node is visited once. All calls together take linear time. (The functions
    `descendant_for_byte_range` and `parent` of tree-sitter begin at the root each time.)

    Args:
        root: The root of a syntax tree.
    """

    def __init__(self, root: Node) -> None:
        self._root = root
        self._offset = 0
        self._restart()

    def path(self, offset: int) -> NodePath:
        """Return the nodes from the root to the innermost node that contains the byte at `offset`."""
        if offset < self._offset:
            self._restart()
        self._offset = offset
        self._leave(offset)
        self._enter(offset)
        inside = self._path[-1].start_byte <= offset
        return self._path if inside or len(self._path) == 1 else self._path[:-1]

    def _restart(self) -> None:
        self._cursor = self._root.walk()
        self._path = [self._root]
        self._no_child = False  # whether no child of the last node reaches the offset

    def _leave(self, offset: int) -> None:
        """Move the cursor to the first node that ends after `offset`: a later sibling or a node further up.

        Nodes that end before `offset` are left behind.
        """
        while self._path[-1].end_byte <= offset:
            if self._next():
                self._no_child = False
            elif not self._up():
                return

    def _enter(self, offset: int) -> None:
        """Move the cursor down to the innermost node that contains the byte `offset` or begins after it."""
        while not self._no_child and self._path[-1].start_byte <= offset:
            if not self._cursor.goto_first_child():
                return
            self._path.append(self._here())
            while self._path[-1].end_byte <= offset:
                if not self._next():
                    self._up()
                    return

    def _next(self) -> bool:
        """Move the cursor to the next sibling of its node; return False if there is none."""
        if not self._cursor.goto_next_sibling():
            return False
        self._path[-1] = self._here()
        return True

    def _up(self) -> bool:
        """Move the cursor from a last child to its parent; return False at the root."""
        if not self._cursor.goto_parent():
            return False
        self._path.pop()
        self._no_child = True
        return True

    def _here(self) -> Node:
        node = self._cursor.node
        assert node
        return node
