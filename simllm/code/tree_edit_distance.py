"""Tree edit distance: the smallest number of node edits that turn one tree into another.

An edit inserts, deletes or relabels a node. The algorithm of Zhang and Shasha (1989) computes the distance
between each subtree of the first tree and each subtree of the second tree. Small subtrees come first, because
larger subtrees need their distances.

The distance of two subtrees is computed from distances between smaller pieces of them, called forests. A
*forest* consists of the first k nodes of a subtree in postorder (for any k) and the edges between them. A
*keyroot* is the root of a tree, or a node with a sibling to its left. For each pair of keyroots, one from
each tree, the algorithm fills a table of distances between forests. Each row stands for a forest of the first
keyroot's subtree, and each column for a forest of the second keyroot's subtree.

This implementation first removes equal parts of the two trees. Then it fills the tables of one keyroot of the
first tree and many keyroots of the second tree together. These tables stand side by side, so that numpy can
work on long rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.code.ordered_tree import OrderedTree

Ints = NDArray[np.int64]
Forest = list[int]  # the roots of neighbouring subtrees, from left to right
_LARGEST = 4_000_000  # entries of one table of forest distances


def tree_edit_distance(a: OrderedTree, b: OrderedTree) -> int:
    """Compute the edit distance of two trees: each insertion, deletion or relabelling of a node costs 1."""
    left, right = _remove_common(a, b)
    if not left or not right:
        return sum(a.sizes[node] for node in left) + sum(b.sizes[node] for node in right)
    a, b = _join(a, left), _join(b, right)
    mirrored = a.mirrored(), b.mirrored()
    if _cost(*mirrored) < _cost(a, b):
        a, b = mirrored
    return _distance(a, b)


def _remove_common(a: OrderedTree, b: OrderedTree) -> tuple[Forest, Forest]:
    """Remove equal parts of two trees, so that their edit distance can be computed faster.

    If the roots have equal labels, both roots are removed. What remains of each tree is a forest: the list of
    the trees below its root. Equal trees at the beginning or at the end of both forests are removed, too. If
    each forest is then a single tree, the roots of these two trees are compared in the same way, and so on.

    The removal does not change the edit distance, because each insertion, deletion and relabelling costs 1.
    With these costs, one of the shortest sequences of edits always leaves the equal parts unchanged.

    Args:
        a: A tree.
        b: Another tree.

    Returns:
        The remaining forest of `a`, and the remaining forest of `b`. Each forest is a list of the roots of
        its trees, as node numbers in postorder. Both forests are empty if `a` and `b` are equal.
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
    """Assign numbers to subtrees: equal subtrees get the same number, different ones different numbers.

    Args:
        tree: The tree.
        numbers: A dict of the numbers that are already assigned. The key for a subtree is the label of its
            root, and the numbers of the subtrees of the root's children. New subtrees are added to the dict.
            To compare the subtrees of two trees, pass the same dict for both trees.

    Returns:
        A list that has, for each node in postorder, the number of the node's subtree.
    """
    found: list[int] = []
    for node, label in enumerate(tree.labels):
        key = (label, tuple(found[child] for child in tree.children(node)))
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def _join(tree: OrderedTree, forest: Forest) -> OrderedTree:
    """Make one tree from a forest, because the edit distance is computed between trees, not forests.

    Args:
        tree: The tree that contains the forest.
        forest: The nodes of `tree` that are the roots of the forest.

    Returns:
        A tree whose root is a new node with an empty label. The trees of the forest are below this root.
    """
    labels: list[str] = []
    sizes: list[int] = []
    for node in forest:
        nodes = slice(node - tree.sizes[node] + 1, node + 1)
        labels += tree.labels[nodes]
        sizes += tree.sizes[nodes]
    return OrderedTree([*labels, ""], [*sizes, len(sizes) + 1])


def _leftmost(tree: OrderedTree) -> list[int]:
    """Return, for each node of a tree in postorder, the leftmost leaf of its subtree, as a node number."""
    return [node - size + 1 for node, size in enumerate(tree.sizes)]


def _keyroots(tree: OrderedTree) -> list[int]:
    """Return the keyroots of a tree: its root, and all nodes with a sibling to their left.

    To compute the edit distance of two trees, a table is filled for each pair of their keyroots.

    Returns:
        The numbers of the keyroots, in ascending order. Nodes are numbered from 0 in postorder.
    """
    return sorted({leaf: node for node, leaf in enumerate(_leftmost(tree))}.values())


def _cost(a: OrderedTree, b: OrderedTree) -> int:
    """Estimate the time to compute the edit distance of two trees, to decide whether to mirror them first.

    The algorithm fills a table for each pair of keyroots, one from each tree. A keyroot is the root of a
    tree, or a node with a sibling to its left. Mirrored trees have the same distance, but other keyroots.

    Returns:
        The total number of entries of these tables.
    """
    rows, columns = (sum(tree.sizes[root] for root in _keyroots(tree)) for tree in (a, b))
    return rows * columns


@dataclass(frozen=True)
class _Columns:
    """The columns of a table that is filled to compute the edit distance of two trees.

    A forest is a list of subtrees of a tree, from left to right. It may be empty. Each row of the table
    stands for a forest of the first tree, and each column for a forest of the second tree. An entry is the
    edit distance of the two forests: the smallest number of nodes to insert, delete or relabel.

    A keyroot is the root of a tree, or a node with a sibling to its left. For each of several keyroots of the
    second tree, the table has a group of columns, called a segment:

    - The first column of the segment stands for the empty forest.
    - Each further column stands for a node of the keyroot's subtree, in postorder. The column's forest has
      this node and all earlier nodes of the subtree.

    Attributes:
        nodes: The node of each column; 0 for the first column of a segment.
        before: For each column, the index of an earlier column of the same segment. Removing the subtree of
            the column's node from the column's forest gives the forest of this earlier column. For the first
            column of a segment, whose forest is empty, the index is that of the column itself.
        is_first: Whether each column is the first of its segment.
        on_path: Whether each column's node has the same leftmost leaf as the keyroot. If so, the forest of
            the column is a single tree.
        insertions: The number of nodes in each column's forest: the cost of inserting all of them.
        offset: A number for each column, which `running_minimum` adds to the column's distances. All columns
            of a segment have the same number. Each segment's number is much lower than that of the segment
            before. Therefore all distances of a segment become lower than those of the segments before, and
            earlier segments do not affect the running minimum in later ones.
        levels: Slices of columns, in the order in which their distances must be computed. Later slices may
            need the distances of earlier ones. Each slice consists of whole segments.
    """

    nodes: Ints
    before: Ints
    is_first: NDArray[np.bool_]
    on_path: NDArray[np.bool_]
    insertions: Ints
    offset: Ints
    levels: list[slice]

    def running_minimum(self, row: Ints, part: slice) -> Ints:
        """Lower distances in a row of the table, so that no distance is more than 1 above the one before it.

        For example, 3, 9, 5 become 3, 4, 5. An entry of the table is the edit distance of two forests (lists
        of subtrees), one from each tree. Each column stands for a forest of the second tree. The columns form
        segments. Within a segment, each forest has one node more than the forest of the column before. The
        insertion of this node costs 1. Therefore the edit distance grows by at most 1 from column to column.
        The first distance of each segment is not changed.

        Args:
            row: Distances in one row of the table, for the columns in `part`.
            part: A slice of columns, which consists of whole segments.

        Returns:
            The row with the lowered distances.
        """
        shifted = row - self.insertions[part] + self.offset[part]
        return np.minimum.accumulate(shifted) + self.insertions[part] - self.offset[part]


def _columns(tree: OrderedTree, widest: int, largest: int) -> Iterator[_Columns]:
    """Make the columns of the tables that are filled to compute the edit distance of two trees.

    A forest is a list of subtrees of a tree, which may be empty. Each row of a table stands for a forest of
    the first tree, and each column for a forest of the second tree.

    A keyroot is the root of a tree, or a node with a sibling to its left. Each keyroot of the second tree has
    these columns: one for the empty forest, and one for each node of the keyroot's subtree. The forest of a
    node's column has this node and all earlier nodes of the subtree, in postorder.

    The columns are divided among several tables, so that no table is too wide. All columns of a keyroot are
    in the same table.

    Args:
        tree: The second tree.
        widest: The largest number of columns in a table. A keyroot with more columns gets its own table.
        largest: An upper limit of all distances between forests. `_Columns.offset` is computed from it.

    Yields:
        The columns of each table.
    """
    leftmost, levels = _leftmost(tree), _levels(tree)
    part: list[int] = []
    width = 0
    for root in sorted(levels, key=lambda root: (levels[root], root)):
        if part and width + tree.sizes[root] + 1 > widest:
            yield _make_columns(part, leftmost, levels, largest)
            part, width = [], 0
        part.append(root)
        width += tree.sizes[root] + 1
    yield _make_columns(part, leftmost, levels, largest)


def _levels(tree: OrderedTree) -> dict[int, int]:
    """Return the order in which the keyroots of a tree can be processed, as a dict from keyroot to level.

    A keyroot is the root of the tree, or a node with a sibling to its left. The level of a keyroot is higher
    than the levels of all other keyroots in its subtree. Keyroots are processed in ascending order of levels,
    because the distances of a subtree depend on the distances of the subtrees inside.
    """
    leftmost, roots = _leftmost(tree), _keyroots(tree)
    levels: dict[int, int] = {}
    highest = [0] * len(tree)  # the smallest level that a keyroot with this subtree may have
    keys = set(roots)
    for node in range(len(tree)):
        for child in tree.children(node):
            highest[node] = max(highest[node], highest[child] + (leftmost[child] != leftmost[node]))
        if node in keys:
            levels[node] = highest[node]
    return levels


def _make_columns(roots: list[int], leftmost: list[int], levels: dict[int, int], largest: int) -> _Columns:
    """Make the columns of one table that is filled to compute the edit distance of two trees.

    A forest is a list of subtrees of a tree, which may be empty. Each row of the table stands for a forest of
    the first tree, and each column for a forest of the second tree.

    A keyroot is the root of a tree, or a node with a sibling to its left. Each of the given keyroots gets
    these columns: one for the empty forest, and one for each node of the keyroot's subtree. The forest of a
    node's column has this node and all earlier nodes of the subtree, in postorder.

    Args:
        roots: The keyroots of the second tree that get columns in this table, sorted by level.
        leftmost: For each node of the second tree, the leftmost leaf of its subtree. Nodes are numbered from
            0 in postorder.
        levels: A dict from each keyroot to its level. Distances are computed in ascending order of levels.
            If a keyroot is inside the subtree of another keyroot, it has a lower level.
        largest: An upper limit of all distances between forests. `_Columns.offset` is computed from it.
    """
    nodes: list[int] = []
    before: list[int] = []
    first: list[bool] = []
    path: list[bool] = []
    insertions: list[int] = []
    offset: list[int] = []
    slices: list[slice] = []
    for number, root in enumerate(roots):
        begin, leaf = len(nodes), leftmost[root]
        below = range(leaf, root + 1)
        nodes += [0, *below]
        before += [begin, *(begin + leftmost[node] - leaf for node in below)]
        first += [True, *([False] * len(below))]
        path += [False, *(leftmost[node] == leaf for node in below)]
        insertions += range(len(below) + 1)
        offset += [-number * 4 * largest] * (len(below) + 1)
        if slices and levels[roots[number - 1]] == levels[root]:
            slices[-1] = slice(slices[-1].start, len(nodes))
        else:
            slices.append(slice(begin, len(nodes)))
    return _Columns(
        np.array(nodes), np.array(before), np.array(first), np.array(path), np.array(insertions),
        np.array(offset), slices,
    )  # fmt: skip


def _distance(a: OrderedTree, b: OrderedTree) -> int:
    """Compute the edit distance of two trees by the algorithm of Zhang and Shasha.

    The caller, `tree_edit_distance`, has already removed equal parts from the trees.
    """
    numbers = {label: number for number, label in enumerate({*a.labels, *b.labels})}
    labels_a, labels_b = (np.array([numbers[label] for label in tree.labels]) for tree in (a, b))
    largest = len(a) + len(b)
    distances = np.zeros((len(a), len(b)), np.int64)  # between the subtrees of every two nodes
    parts = list(_columns(b, max(1, _LARGEST // (len(a) + 1)), largest))
    leftmost = _leftmost(a)
    for root in _keyroots(a):
        for columns in parts:
            _fill(distances, columns, leftmost, root, labels_a, labels_b, largest)
    return int(distances[-1, -1])


def _fill(
    distances: Ints,
    columns: _Columns,
    leftmost: list[int],
    root: int,
    labels_a: Ints,
    labels_b: Ints,
    largest: int,
) -> None:
    """Compute edit distances between a subtree of the first tree and several subtrees of the second tree.

    The roots of the subtrees are keyroots. A keyroot is the root of a tree, or a node with a sibling to its
    left. A forest consists of the first k nodes of a subtree in postorder, for some k.

    The function fills a table of distances between forests. Each row stands for a forest of the first tree's
    subtree, and each column for a forest of one of the second tree's subtrees. If both forests are single
    trees, their distance is also stored in `distances`.

    Args:
        distances: (n, m) distances between the subtrees of the n nodes of the first tree and the m nodes of
            the second tree. The function reads distances that earlier calls stored, and adds new ones.
        columns: The columns of the table, which belong to several keyroots of the second tree.
        leftmost: For each node of the first tree, the number of the leftmost leaf of its subtree.
        root: The keyroot of the first tree whose subtree is used.
        labels_a: (n,) labels of the first tree, as numbers.
        labels_b: (m,) labels of the second tree, as numbers.
        largest: An upper limit of the distances. Some edits are impossible; for example, an empty forest has
            no node to relabel. Their cost is set to twice this number, so that they are never chosen.
    """
    leaf = leftmost[root]
    table = np.empty((root - leaf + 2, len(columns.nodes)), np.int64)
    table[0] = columns.insertions
    for row, node in enumerate(range(leaf, root + 1), 1):
        deleted = table[row - 1] + 1
        if leftmost[node] != leaf:
            cut = table[leftmost[node] - leaf][columns.before] + distances[node][columns.nodes]
            cut[columns.is_first] = 2 * largest
            table[row] = columns.running_minimum(np.minimum(deleted, cut), slice(None))
            continue
        # Here both forests may be trees, whose roots are mapped onto each other.
        relabelled = np.empty_like(deleted)
        relabelled[0] = 2 * largest
        relabelled[1:] = table[row - 1][:-1] + (labels_b[columns.nodes[1:]] != labels_a[node])
        for part in columns.levels:
            nodes, path = columns.nodes[part], columns.on_path[part]
            cut = columns.insertions[columns.before[part]] + distances[node][nodes]
            best = np.where(path, relabelled[part], cut)
            best[columns.is_first[part]] = 2 * largest
            table[row, part] = columns.running_minimum(np.minimum(deleted[part], best), part)
            distances[node][nodes[path]] = table[row, part][path]
