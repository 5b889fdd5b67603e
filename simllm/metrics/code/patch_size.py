"""Two metrics for the size of a patch: RPS (relative patch size) and RPSR (relative patch size ratio).

Let d(a, b) be the edit distance between the syntax trees of a and b (Yang et al., CREF). RPS is
d(source, candidate) / (number of nodes of the source's tree). RPSR is
d(source, candidate) / d(source, reference). Both are at least 0, and lower is better. No tree may have more
than `largest` nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simllm.code.tree_distance import syntax_tree, tree_edit_distance
from simllm.metrics.code.similarity import LARGEST_TREE, distance_or_nan, trees_of
from simllm.metrics.interface import Example


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


def patch_size(source: str, candidate: str, language: str, largest: int = LARGEST_TREE) -> PatchSize | None:
    """Measure the patch from a source to a candidate; None if a tree is too large, or too slow to parse."""
    try:
        a, b = syntax_tree(source, language), syntax_tree(candidate, language)
    except TimeoutError:
        return None
    larger = max(len(a), len(b))
    return None if larger > largest else PatchSize(tree_edit_distance(a, b), len(a), larger)


def relative_patch_size(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute RPS; NaN if a tree is too large."""
    size = patch_size(example.source or "", example.candidate, example.language or "", largest)
    return size.edits / size.nodes if size else math.nan


def relative_patch_size_ratio(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute RPSR; NaN if source and reference have equal trees, or if a tree is too large."""
    source, candidate, reference = trees_of(
        example, example.source or "", example.candidate, example.reference
    )
    expected = distance_or_nan(source, reference, largest)
    return distance_or_nan(source, candidate, largest) / expected if expected else math.nan


def corpus_patch_size_ratio(items: Sequence[Sequence[Example]], largest: int = LARGEST_TREE) -> float:
    """Compute RPSR of a corpus, in the form that Yang et al. (CREF) published (see `ratio_of_sizes`).

    An item has one example for each candidate, all with the same source and reference.
    """
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
