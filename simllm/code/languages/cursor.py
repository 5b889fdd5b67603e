"""Search in a syntax tree for the node at a byte of the source code, and for the path from the root to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

NodePath = Sequence["Node"]  # the nodes from the root of a syntax tree down to some node, both included


class TreeCursor:
    """Cursor that finds the path from the root to the innermost syntax node at a byte offset.

    If the offsets of successive calls increase, all calls together take linear time.
    """

    def __init__(self, root: Node) -> None:
        self._root = root
        self._offset = 0
        self._restart()

    def path(self, offset: int) -> NodePath:
        """Return the nodes from the root to the innermost node that contains the byte at `offset`.

        The next call may change the returned list.
        """
        if offset < self._offset:
            self._restart()
        self._offset = offset
        self._leave(offset)
        self._enter(offset)
        # In a gap between two nodes, such as white space, the cursor stands on the node after the gap.
        inside = self._path[-1].start_byte <= offset
        return self._path if inside or len(self._path) == 1 else self._path[:-1]

    def _restart(self) -> None:
        # tree-sitter's `descendant_for_byte_range` and `parent` are slower, because they start at the root
        # each time.
        self._cursor = self._root.walk()
        self._path = [self._root]
        self._no_child = False  # whether all children of the current node end before the offset

    def _leave(self, offset: int) -> None:
        """Move the cursor forward, past the nodes that end before the byte at `offset`; stop at the root."""
        while self._path[-1].end_byte <= offset:
            if self._next():
                self._no_child = False
            elif not self._up():
                return

    def _enter(self, offset: int) -> None:
        """Move the cursor down to the innermost node at the byte `offset`, or to the node after its gap."""
        while not self._no_child and self._path[-1].start_byte <= offset:
            if not self._cursor.goto_first_child():
                return
            self._path.append(self._here())
            while self._path[-1].end_byte <= offset:
                if not self._next():
                    self._up()
                    return

    def _next(self) -> bool:
        """Move the cursor to the next sibling of the current node; return False if there is no sibling."""
        if not self._cursor.goto_next_sibling():
            return False
        self._path[-1] = self._here()
        return True

    def _up(self) -> bool:
        """Move the cursor to the parent of the current node; return False at the root."""
        if not self._cursor.goto_parent():
            return False
        self._path.pop()
        self._no_child = True
        return True

    def _here(self) -> Node:
        node = self._cursor.node
        assert node
        return node


def path_to_type(path: NodePath, types: frozenset[str]) -> NodePath | None:
    """Shorten a path to the innermost node of a wanted type that begins where the path's last node begins.

    A path to the first word of a method becomes a path to the method. None if there is no such node.
    """
    start = path[-1].start_byte
    for at in range(len(path) - 1, -1, -1):
        if path[at].start_byte != start:
            return None
        if path[at].type in types:
            return path[: at + 1]
    return None
