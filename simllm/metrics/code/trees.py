"""Metrics of syntax trees: tree similarity, and the size of a patch as RPS and RPSR (Yang et al., CREF).

Let d(a, b) be the edit distance between the syntax trees of a and b. RPS (relative patch size) is
d(source, candidate) / (number of nodes of the source's tree). RPSR (relative patch size ratio) is
d(source, candidate) / d(source, reference). Both are at least 0, and lower is better. No tree may have more
than `largest` nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from simllm.code.clang_trees import clang_tree
from simllm.code.tree_distance import syntax_trees, tree_edit_distance
from simllm.metrics.code.code_metric import CodeScorer, Items
from simllm.metrics.code.similarity import Pair, compare, whole_lines
from simllm.metrics.interface import Example

_CACHED = 1024  # sizes; the candidates of an item share the patch of the reference
LARGEST_TREE = 3000  # nodes; by default, examples with larger trees get no score


def load_tree_similarity(argument: str) -> CodeScorer:
    """1 - (tree edit distance) / (nodes of the larger tree) of the normal forms; at least 0.

    `argument` is the largest number of nodes, by default 3000.
    """
    largest = int(argument or LARGEST_TREE)

    def score(pairs: Sequence[Pair]) -> list[float]:
        return [_tree_similarity(*one, largest) for one in pairs]

    return CodeScorer(lambda examples: compare(examples, whole_lines, score))


def _tree_similarity(candidate: str, reference: str, language: str, largest: int) -> float:
    """Compute the similarity of two trees; NaN if a tree has more than `largest` nodes."""
    size = patch_size(candidate, reference, language, largest)
    return max(1 - size.edits / size.larger, 0.0) if size else math.nan


def load_patch_size(argument: str, ratio: bool) -> CodeScorer:
    """RPS, or RPSR if `ratio` is true; `argument` is the largest number of nodes, by default 3000."""
    largest = int(argument or LARGEST_TREE)
    if ratio:
        return CodeScorer(
            lambda examples: [_relative_patch_size_ratio(example, largest) for example in examples],
            lambda items: _corpus_patch_size_ratio(items, largest),
        )
    return CodeScorer(lambda examples: [_relative_patch_size(example, largest) for example in examples])


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


@lru_cache(_CACHED)
def clang_patch_size(source: str, candidate: str, largest: int = LARGEST_TREE) -> PatchSize | None:
    """Measure a patch of C++ as CREF's published code does, on the trees of libclang; None as `patch_size`.

    The roots of the two trees always differ, so that an unchanged program has one edit.
    """
    a, b = clang_tree(source, "before.cpp"), clang_tree(candidate, "after.cpp")
    if a is None or b is None:
        return None
    larger = max(len(a), len(b))
    return None if larger > largest else PatchSize(tree_edit_distance(a, b), len(a), larger)


def _relative_patch_size(example: Example, largest: int) -> float:
    """Compute RPS; NaN if a tree is too large."""
    size = patch_size(example.source or "", example.candidate, example.language or "", largest)
    return size.edits / size.nodes if size else math.nan


def _relative_patch_size_ratio(example: Example, largest: int) -> float:
    """Compute RPSR; NaN if source and reference have equal trees, or if a tree is too large."""
    source, language = example.source or "", example.language or ""
    expected = patch_size(source, example.reference, language, largest)
    size = patch_size(source, example.candidate, language, largest)
    return size.edits / expected.edits if size and expected and expected.edits else math.nan


def _corpus_patch_size_ratio(items: Items, largest: int) -> float:
    """Compute RPSR of a corpus, in the form that Yang et al. (CREF) published (see `ratio_of_sizes`)."""
    sizes = []
    for examples in items:
        source, language = examples[0].source or "", examples[0].language or ""
        made = [patch_size(source, one.candidate, language, largest) for one in examples]
        sizes.append((made, patch_size(source, examples[0].reference, language, largest)))
    return ratio_of_sizes(sizes)


def ratio_of_sizes(items: Iterable[tuple[Sequence[PatchSize | None], PatchSize | None]]) -> float:
    """Compute RPSR of a corpus from the sizes of each item's patches: the candidates', and the reference's.

    The relative size of a patch is its edits over the nodes of the larger tree. The numerator sums the mean
    relative size of each item's candidates; the denominator sums the relative sizes of the reference patches.
    The result is NaN if the denominator is 0.
    """
    reached = expected = 0.0
    for made, wanted in items:
        known = [size.edits / size.larger for size in made if size]
        # An item is left out as a whole if one of its trees is too large.
        if wanted and known and len(known) == len(made):
            reached += sum(known) / len(known)
            expected += wanted.edits / wanted.larger
    return reached / expected if expected else math.nan
