"""Syntax trees as ordered trees, their edit distance (Zhang and Shasha), and the size of a patch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tree_sitter import Node

from simllm.code.languages.language import find_language


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


_OPERATOR = re.compile(r"[-+*/%<>=!&|^~?@]+|(?:and|or|not|in|is)(?: (?:not|in))?")


def syntax_tree(code: str, language: str) -> OrderedTree:
    """Parse code into its syntax tree without comments and punctuation; syntax errors are allowed.

    The nodes are the operators and the named nodes of the tree-sitter tree. The label of an inner node is its
    type; that of a leaf is its type and its text. White space between tokens is removed from the text: an
    empty argument list `( )` becomes `()`. TimeoutError if parsing takes too long.
    """
    (tree,) = syntax_trees([code], language)
    return tree


def syntax_trees(codes: Sequence[str], language: str) -> list[OrderedTree]:
    """Parse several pieces of code as of `syntax_tree`."""
    texts = [code.encode(errors="replace") for code in codes]
    roots = [find_language(language).parse(text) for text in texts]
    return [_ordered_tree(root, text) for root, text in zip(roots, texts, strict=True)]


def _ordered_tree(root: Node, text: bytes) -> OrderedTree:
    labels: list[str] = []
    sizes: list[int] = []
    # A stack instead of recursion, because trees of generated code may be deeper than Python's limit.
    stack = [(root, False, 0)]  # a node, whether its children are done, and the number of labels before them
    while stack:
        node, done, before = stack.pop()
        if not done:
            stack.append((node, True, len(labels)))
            if node.is_named:
                stack += [(child, False, 0) for child in reversed(node.children) if _is_kept(child)]
        else:
            size = len(labels) - before + 1
            labels.append(node.type if size > 1 else f"{node.type} {_token_text(node, text)}".rstrip())
            sizes.append(size)
    return OrderedTree(labels, sizes)


def _is_kept(node: Node) -> bool:
    """Return whether a node is an operator or a named node, but no comment."""
    if node.is_named:
        return "comment" not in node.type
    return bool(_OPERATOR.fullmatch(node.type))


def _token_text(node: Node, code: bytes) -> str:
    """Return the text of all tokens in a node, without the white space and comments between the tokens."""
    if not node.child_count:
        # Faster than `node.text`, for which tree-sitter calls back into Python.
        return code[node.start_byte : node.end_byte].decode(errors="replace")
    return "".join(_token_text(child, code) for child in node.children if "comment" not in child.type)


Ints = NDArray[np.int64]
Forest = list[int]  # the roots of neighbouring subtrees, from left to right
_LARGEST = 4_000_000  # entries of one table of forest distances


def tree_edit_distance(a: OrderedTree, b: OrderedTree) -> int:
    """Compute the edit distance of two trees: each insertion, deletion or relabelling of a node costs 1."""
    left, right = _remove_common(a, b)
    if not left or not right:
        return sum(a.sizes[node] for node in left) + sum(b.sizes[node] for node in right)
    a, b = _join(a, left), _join(b, right)
    # Mirrored trees have the same distance, but other keyroots, and so perhaps smaller tables.
    mirrored = a.mirrored(), b.mirrored()
    if _cost(*mirrored) < _cost(a, b):
        a, b = mirrored
    return _distance(a, b)


def _remove_common(a: OrderedTree, b: OrderedTree) -> tuple[Forest, Forest]:
    """Remove equal parts of two trees; return the roots of the trees that remain of each, from left to right.

    Roots with equal labels are removed, then equal trees at both ends of the two lists of their children. If
    each list is then a single tree, their roots are compared in the same way, and so on.
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
        # Removing equal parts keeps the distance, because all edits cost 1: one of the shortest sequences of
        # edits always leaves the equal parts unchanged.
        if not (len(left) == len(right) == 1 and a.labels[left[0]] == b.labels[right[0]]):
            return left, right
        left, right = a.children(left[0]), b.children(right[0])


def _number_subtrees(tree: OrderedTree, numbers: dict[tuple[str, tuple[int, ...]], int]) -> list[int]:
    """Return the number of each node's subtree; equal subtrees get equal numbers, also in two trees."""
    found: list[int] = []
    for node, label in enumerate(tree.labels):
        key = (label, tuple(found[child] for child in tree.children(node)))
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def _join(tree: OrderedTree, forest: Forest) -> OrderedTree:
    """Put the trees with these roots below a new root with an empty label."""
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
    """Return the keyroots of a tree in ascending order."""
    # Of all nodes with the same leftmost leaf, the highest is a keyroot: it is the last in postorder.
    return sorted({leaf: node for node, leaf in enumerate(_leftmost(tree))}.values())


def _cost(a: OrderedTree, b: OrderedTree) -> int:
    """Return the number of entries of all tables."""
    rows, columns = (sum(tree.sizes[root] for root in _keyroots(tree)) for tree in (a, b))
    return rows * columns


@dataclass(frozen=True)
class _Columns:
    """The columns of a table: whole segments, one for each of several keyroots of the second tree.

    Attributes:
        nodes: The node of each column; 0 for the first column of a segment.
        before: For each column, the index of the column whose forest lacks the subtree of this column's node.
            For the first column of a segment, the index of the column itself.
        is_first: Whether each column is the first of its segment.
        on_path: Whether each column's node has the same leftmost leaf as the keyroot. If so, the forest of
            the column is a single tree.
        insertions: The number of nodes in each column's forest: the cost of inserting all of them.
        offset: A number for each column, the same within a segment, and much lower than in the segment
            before.
        levels: Slices of whole segments, in the order in which their distances must be computed.
    """

    nodes: Ints
    before: Ints
    is_first: NDArray[np.bool_]
    on_path: NDArray[np.bool_]
    insertions: Ints
    offset: Ints
    levels: list[slice]

    def running_minimum(self, row: Ints, part: slice) -> Ints:
        """Lower distances in a row, so that none is more than 1 above the one before: 3, 9, 5 become 3, 4, 5.

        The first distance of each segment is not changed. `part` is a slice of whole segments.
        """
        # Each forest has one node more than that of the column before, and its insertion costs 1. The offsets
        # make all distances of a segment lower than those of the segments before, so that earlier segments do
        # not affect the running minimum in later ones.
        shifted = row - self.insertions[part] + self.offset[part]
        return np.minimum.accumulate(shifted) + self.insertions[part] - self.offset[part]


def _columns(tree: OrderedTree, widest: int, largest: int) -> Iterator[_Columns]:
    """Divide the segments of all keyroots of the second tree among tables of at most `widest` columns.

    A keyroot with more columns gets its own table. No distance between forests is above `largest`.
    """
    leftmost, levels = _leftmost(tree), _levels(tree)
    part: list[int] = []
    width = 0
    # The distances of a subtree depend on those of the subtrees inside, whose keyroots have lower levels.
    for root in sorted(levels, key=lambda root: (levels[root], root)):
        if part and width + tree.sizes[root] + 1 > widest:
            yield _make_columns(part, leftmost, levels, largest)
            part, width = [], 0
        part.append(root)
        width += tree.sizes[root] + 1
    yield _make_columns(part, leftmost, levels, largest)


def _levels(tree: OrderedTree) -> dict[int, int]:
    """Return the level of each keyroot, which is higher than those of all other keyroots in its subtree."""
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
    """Make the columns of one table from keyroots that are sorted by level."""
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
    """Compute the edit distance of two trees by the algorithm of Zhang and Shasha."""
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
    """Fill the table of one keyroot of the first tree, and add distances of subtrees to (n, m) `distances`.

    The trees have n and m nodes, whose labels are given as numbers, (n,) and (m,).
    """
    leaf = leftmost[root]
    table = np.empty((root - leaf + 2, len(columns.nodes)), np.int64)
    table[0] = columns.insertions
    for row, node in enumerate(range(leaf, root + 1), 1):
        deleted = table[row - 1] + 1
        # The forest of this row has several trees, so that no pair of forests is a pair of trees. All
        # segments are filled at once, because earlier calls have stored all distances that the row needs.
        if leftmost[node] != leaf:
            cut = table[leftmost[node] - leaf][columns.before] + distances[node][columns.nodes]
            # An empty forest has no subtree to match. Twice the largest distance is never chosen.
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


LARGEST_TREE = 3000  # nodes; by default, examples with larger trees get no score
_CACHED = 8192  # sizes; scores and corpus values need the same ones


@dataclass(frozen=True)
class PatchSize:
    """The size of a patch, measured on the syntax trees of the code before and after the patch.

    Attributes:
        edits: The tree edit distance: the number of nodes that are inserted, deleted or renamed.
        nodes: The number of nodes of the tree before the patch.
        larger: The number of nodes of the larger of the two trees.
    """

    edits: int
    nodes: int
    larger: int


@lru_cache(_CACHED)
def patch_size(source: str, candidate: str, language: str, largest: int = LARGEST_TREE) -> PatchSize | None:
    """Measure the patch from a source to a candidate; None if a tree is too large, or too slow to parse."""
    try:
        a, b = syntax_trees([source, candidate], language)
    except TimeoutError:
        return None
    larger = max(len(a), len(b))
    return None if larger > largest else PatchSize(tree_edit_distance(a, b), len(a), larger)
