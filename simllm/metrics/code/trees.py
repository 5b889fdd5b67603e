"""Metrics of syntax trees: tree similarity, and the size of a patch as RPS and RPSR (Yang et al., CREF).

Let d(a, b) be the edit distance between the syntax trees of a and b. RPS (relative patch size) is
d(source, candidate) / (number of nodes of the source's tree). RPSR (relative patch size ratio) is
d(source, candidate) / d(source, reference). Both are at least 0, and lower is better. No tree may have more
than `largest` nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from simllm.code.clang_trees import clang_tree
from simllm.code.tree_distance import LARGEST_TREE, PatchSize, patch_size, tree_edit_distance
from simllm.metrics.code.code_metric import CodeScorer, Items
from simllm.metrics.code.similarity import Pair, compare, whole_lines
from simllm.metrics.interface import Example


def load_tree_similarity(argument: str) -> CodeScorer:
    """1 - (tree edit distance) / (nodes of the larger tree) of the normal forms; at least 0.

    `argument` is the largest number of nodes, by default 3000.
    """
    largest = int(argument or LARGEST_TREE)

    def score(pairs: Sequence[Pair]) -> list[float]:
        sizes = [patch_size(*one, largest) for one in pairs]
        return [max(1 - size.edits / size.larger, 0.0) if size else math.nan for size in sizes]

    return CodeScorer(lambda examples: compare(examples, whole_lines, score))


def load_patch_size(argument: str, ratio: bool) -> CodeScorer:
    """RPS, or RPSR if `ratio` is true; `argument` is the largest number of nodes, by default 3000."""
    largest = int(argument or LARGEST_TREE)
    if ratio:
        return CodeScorer(
            lambda examples: _relative_patch_size_ratios(examples, largest),
            lambda items: _corpus_patch_size_ratio(items, largest),
        )
    return CodeScorer(lambda examples: _relative_patch_sizes(examples, largest))


def _made(examples: Sequence[Example], largest: int) -> list[PatchSize | None]:
    """Measure the patches from the sources to the candidates."""
    return [patch_size(one.source or "", one.candidate, one.language or "", largest) for one in examples]


def _expected(examples: Sequence[Example], largest: int) -> list[PatchSize | None]:
    """Measure the patches from the sources to the references."""
    return [patch_size(one.source or "", one.reference, one.language or "", largest) for one in examples]


@lru_cache(1024)
def clang_patch_size(source: str, candidate: str, largest: int = LARGEST_TREE) -> PatchSize | None:
    """Measure a patch of C++ as CREF's published code does, on the trees of libclang; None as `patch_size`.

    The roots of the two trees always differ, so that an unchanged program has one edit.
    """
    a, b = clang_tree(source, "before.cpp"), clang_tree(candidate, "after.cpp")
    if a is None or b is None:
        return None
    larger = max(len(a), len(b))
    return None if larger > largest else PatchSize(tree_edit_distance(a, b), len(a), larger)


def _relative_patch_sizes(examples: Sequence[Example], largest: int) -> list[float]:
    """Compute RPS; NaN where a tree is too large."""
    return [size.edits / size.nodes if size else math.nan for size in _made(examples, largest)]


def _relative_patch_size_ratios(examples: Sequence[Example], largest: int) -> list[float]:
    """Compute RPSR; NaN where source and reference have equal trees, or where a tree is too large."""
    return [
        size.edits / expected.edits if size and expected and expected.edits else math.nan
        for size, expected in zip(_made(examples, largest), _expected(examples, largest), strict=True)
    ]


def _corpus_patch_size_ratio(items: Items, largest: int) -> float:
    """Compute RPSR of a corpus, in the form that Yang et al. (CREF) published (see `ratio_of_sizes`)."""
    references = _expected([examples[0] for examples in items], largest)
    return ratio_of_sizes(
        (_made(examples, largest), expected) for examples, expected in zip(items, references, strict=True)
    )


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
