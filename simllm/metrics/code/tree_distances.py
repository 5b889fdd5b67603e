"""Tree similarity, RPS and RPSR: metrics from the edit distance between syntax trees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simllm.code.ordered_tree import OrderedTree
from simllm.code.syntax_tree import syntax_tree
from simllm.code.tree_edit_distance import tree_edit_distance
from simllm.metrics.code.compared_texts import compare_whole
from simllm.metrics.protocol import Example

LARGEST_TREE = 3000  # nodes; by default, examples with larger trees get no score


@dataclass(frozen=True)
class PatchSize:
    """The size of a patch, measured by the syntax trees of the code before and after it.

    Attributes:
        edits: The tree edit distance: how many nodes are inserted, deleted or renamed.
        nodes: The number of nodes before the patch.
        larger: The number of nodes of the larger tree.
    """

    edits: int
    nodes: int
    larger: int


def patch_size(source: str, candidate: str, language: str, largest: int = LARGEST_TREE) -> PatchSize | None:
    """Measure the patch from a source to a candidate.

    Returns:
        The size; None if a tree has more than `largest` nodes.
    """
    a, b = syntax_tree(source, language), syntax_tree(candidate, language)
    larger = max(len(a), len(b))
    return None if larger > largest else PatchSize(tree_edit_distance(a, b), len(a), larger)


def tree_similarity(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute 1 - (tree edit distance) / (number of nodes of the larger tree).

    The trees are the syntax trees of the normal forms.

    Returns:
        A value from 0 to 1; NaN if a tree has more than `largest` nodes.
    """

    def similarity(candidate: str, reference: str) -> float:
        a, b = _trees(example, candidate, reference)
        return 1 - _relative_distance(a, b, largest)

    return compare_whole(example, similarity)


def relative_patch_size(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute RPS, the relative patch size (Yang et al., CREF).

    It is the tree edit distance from source to candidate, divided by the number of nodes of the source.

    Returns:
        A value from 0, lower is better; NaN if a tree has more than `largest` nodes.
    """
    size = patch_size(example.source or "", example.candidate, example.language or "", largest)
    return size.edits / size.nodes if size else math.nan


def relative_patch_size_ratio(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute RPSR (Yang et al., CREF), the size of the candidate's patch relative to the reference's.

    It is the tree edit distance from source to candidate, divided by that from source to reference.

    Returns:
        A value from 0, lower is better; NaN if source and reference have equal trees, or if a tree has more
        than `largest` nodes.
    """
    source, candidate, reference = _trees(example, example.source or "", example.candidate, example.reference)
    expected = _distance(source, reference, largest)
    return _distance(source, candidate, largest) / expected if expected else math.nan


def corpus_patch_size_ratio(items: Sequence[Sequence[Example]], largest: int = LARGEST_TREE) -> float:
    """Compute RPSR of a corpus, in the form that Yang et al. (CREF) published.

    It is the sum over items of the mean distance d from the source to the candidates, divided by the sum of d
    from the source to the reference; d is the tree edit distance / nodes of the larger tree.

    Args:
        items: For each item, the examples of its candidates.
        largest: Items with a tree of more than `largest` nodes are left out.

    Returns:
        A value from 0, lower is better; NaN if all sources and references have equal trees.
    """
    sizes = []
    for examples in items:
        source, language = examples[0].source or "", examples[0].language or ""
        made = [patch_size(source, one.candidate, language, largest) for one in examples]
        sizes.append((made, patch_size(source, examples[0].reference, language, largest)))
    return ratio_of_sizes(sizes)


def ratio_of_sizes(items: Iterable[tuple[Sequence[PatchSize | None], PatchSize | None]]) -> float:
    """Divide the sizes of patches by those of the references' patches, as `corpus_patch_size_ratio` does.

    Args:
        items: For each item, the sizes of the candidates' patches and that of the reference's patch. Items
            with an unknown size are left out.

    Returns:
        A value from 0, lower is better; NaN if there is nothing to divide by.
    """
    reached = expected = 0.0
    for made, wanted in items:
        known = [size.edits / size.larger for size in made if size]
        if wanted and known and len(known) == len(made):
            reached += sum(known) / len(known)
            expected += wanted.edits / wanted.larger
    return reached / expected if expected else math.nan


def _trees(example: Example, *texts: str) -> list[OrderedTree]:
    return [syntax_tree(text, example.language or "") for text in texts]


def _relative_distance(a: OrderedTree, b: OrderedTree, largest: int) -> float:
    """Return the tree edit distance / nodes of the larger tree."""
    return _distance(a, b, largest) / max(len(a), len(b))


def _distance(a: OrderedTree, b: OrderedTree, largest: int) -> float:
    """Return the tree edit distance; NaN if a tree has more than `largest` nodes."""
    return math.nan if max(len(a), len(b)) > largest else tree_edit_distance(a, b)
