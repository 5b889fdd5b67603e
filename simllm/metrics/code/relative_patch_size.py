"""Two metrics for the size of a code change: RPS (relative patch size) and RPSR (relative patch size ratio).

The source is the code before the change; the candidate and the reference are two versions of the code after
the change. Let d(a, b) be the edit distance between the syntax trees of a and b. RPS is
d(source, candidate) / (number of nodes of the source's tree). RPSR is
d(source, candidate) / d(source, reference).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simllm.code.labelled_syntax_tree import syntax_tree
from simllm.code.tree_edit_distance import tree_edit_distance
from simllm.metrics.code.tree_similarity import LARGEST_TREE, distance_or_nan, trees_of
from simllm.metrics.metric_interface import Example


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
    """Measure the size of the patch that turns a source into a candidate.

    Args:
        source: The code before the patch.
        candidate: The code after the patch.
        language: The language of both, such as "java".
        largest: The largest allowed number of nodes of a syntax tree.

    Returns:
        The size; None if a tree has more than `largest` nodes.
    """
    a, b = syntax_tree(source, language), syntax_tree(candidate, language)
    larger = max(len(a), len(b))
    return None if larger > largest else PatchSize(tree_edit_distance(a, b), len(a), larger)


def relative_patch_size(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute RPS, the relative patch size (Yang et al., CREF).

    RPS is the tree edit distance from source to candidate, divided by the number of nodes of the source's
    tree.

    Args:
        example: The source (the code before the patch) and the candidate (the code after it).
        largest: The largest allowed number of nodes of a syntax tree.

    Returns:
        A value of at least 0, where lower is better; NaN if a tree has more than `largest` nodes.
    """
    size = patch_size(example.source or "", example.candidate, example.language or "", largest)
    return size.edits / size.nodes if size else math.nan


def relative_patch_size_ratio(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute RPSR (Yang et al., CREF): the size of the candidate's patch relative to the reference's patch.

    RPSR is the tree edit distance from source to candidate, divided by the distance from source to reference.

    Args:
        example: The candidate and the reference, with their source (the code before the patch).
        largest: The largest allowed number of nodes of a syntax tree.

    Returns:
        A value of at least 0, where lower is better; NaN if source and reference have equal trees, or if a
        tree has more than `largest` nodes.
    """
    source, candidate, reference = trees_of(
        example, example.source or "", example.candidate, example.reference
    )
    expected = distance_or_nan(source, reference, largest)
    return distance_or_nan(source, candidate, largest) / expected if expected else math.nan


def corpus_patch_size_ratio(items: Sequence[Sequence[Example]], largest: int = LARGEST_TREE) -> float:
    """Compute RPSR (relative patch size ratio) of a corpus, in the form that Yang et al. (CREF) published.

    An item of the corpus is a source (code to patch) with its reference and one or more candidates. Let
    d(a, b) be the edit distance between the syntax trees of a and b, divided by the number of nodes of the
    larger tree. RPSR is a fraction:

    - Numerator: the mean of d(source, candidate) over the candidates of an item, summed over all items.
    - Denominator: d(source, reference), summed over all items.

    Args:
        items: The items. Each item is a list of examples, one example for each candidate.
        largest: The largest allowed number of nodes of a tree. Items with a larger tree are left out.

    Returns:
        A value of at least 0, where lower is better. It is NaN if all items are left out, or if source and
        reference have equal trees in every item.
    """
    sizes = []
    for examples in items:
        source, language = examples[0].source or "", examples[0].language or ""
        made = [patch_size(source, one.candidate, language, largest) for one in examples]
        sizes.append((made, patch_size(source, examples[0].reference, language, largest)))
    return ratio_of_sizes(sizes)


def ratio_of_sizes(items: Iterable[tuple[Sequence[PatchSize | None], PatchSize | None]]) -> float:
    """Compute RPSR (relative patch size ratio) of a corpus from the sizes of patches.

    An item of the corpus is a piece of code with one or more patches to judge and one reference patch. The
    relative size of a patch is the edit distance between the syntax trees before and after the patch, divided
    by the number of nodes of the larger tree. RPSR is a fraction:

    - Numerator: the mean relative size of the patches to judge in an item, summed over all items.
    - Denominator: the relative size of the reference patch in an item, summed over all items.

    Args:
        items: For each item, the sizes of the patches to judge, and the size of the reference patch. A size
            is None if a syntax tree was too large; the whole item is then left out.

    Returns:
        A value of at least 0, where lower is better; NaN if the denominator is 0.
    """
    reached = expected = 0.0
    for made, wanted in items:
        known = [size.edits / size.larger for size in made if size]
        if wanted and known and len(known) == len(made):
            reached += sum(known) / len(known)
            expected += wanted.edits / wanted.larger
    return reached / expected if expected else math.nan
