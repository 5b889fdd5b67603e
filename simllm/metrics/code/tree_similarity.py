"""Similarity of the syntax trees of two pieces of code, from their tree edit distance."""

from __future__ import annotations

import math

from simllm.code.labelled_syntax_tree import syntax_tree
from simllm.code.ordered_tree import OrderedTree
from simllm.code.tree_edit_distance import tree_edit_distance
from simllm.metrics.code.whole_or_edited_lines import compare_whole
from simllm.metrics.metric_interface import Example

LARGEST_TREE = 3000  # nodes; by default, examples with larger trees get no score


def syntax_tree_similarity(example: Example, largest: int = LARGEST_TREE) -> float:
    """Compute 1 - (tree edit distance) / (nodes of the larger tree) of the normal forms; at least 0.

    The result is NaN if a tree has more than `largest` nodes.
    """

    def similarity(candidate: str, reference: str) -> float:
        a, b = trees_of(example, candidate, reference)
        return max(1 - distance_or_nan(a, b, largest) / max(len(a), len(b)), 0.0)  # NaN stays NaN

    return compare_whole(example, similarity)


def trees_of(example: Example, *texts: str) -> list[OrderedTree]:
    """Parse pieces of code in the language of an example into syntax trees."""
    return [syntax_tree(text, example.language or "") for text in texts]


def distance_or_nan(a: OrderedTree, b: OrderedTree, largest: int) -> float:
    """Return the edit distance between two trees; NaN if a tree has more than `largest` nodes."""
    return math.nan if max(len(a), len(b)) > largest else tree_edit_distance(a, b)
