"""CodeBLEU (Ren et al., 2020): the mean of n-gram, weighted n-gram, syntax and data flow matches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean

from tree_sitter import Node

from simllm.code.languages.language_registry import find_language
from simllm.io import read_lines
from simllm.metrics.code.code_tokens import ngrams, tokenize
from simllm.metrics.code.data_flow import data_flow

_OTHER_TOKENS = 0.2  # weight of a token that is no keyword
_SMOOTHING = 0.1  # replaces a numerator of 0
_Parts = list[tuple[str | None, int]]  # the named children in an s-expression: field and number of each


@dataclass(frozen=True)
class CodeBleuParts:
    """The parts of CodeBLEU, each from 0 to 1.

    Attributes:
        ngram: BLEU-4 of the tokens.
        weighted_ngram: Recall of n-grams, in which keywords weigh more than other tokens.
        syntax: Share of the reference's syntax subtrees that also occur in the candidate.
        data_flow: Share of the reference's data flow (relations such as "x is computed from y") that the
            candidate has, too. None if the reference has no data flow, or if the language is not Python or
            Java.
    """

    ngram: float
    weighted_ngram: float
    syntax: float
    data_flow: float | None

    @property
    def mean(self) -> float:
        """CodeBLEU: the mean of the four parts, or of three if `data_flow` is None."""
        parts = (self.ngram, self.weighted_ngram, self.syntax, self.data_flow)
        return mean(part for part in parts if part is not None)


def code_bleu(candidate: str, reference: str, language: str) -> CodeBleuParts:
    """Compute the four parts of CodeBLEU: n-gram, weighted n-gram, syntax and data flow match.

    Args:
        candidate: The code to judge.
        reference: The code to compare the candidate with; it must have at least one token.
        language: The language of both, such as "java".

    Raises:
        TimeoutError: Parsing takes too long.
    """
    tokens, expected = tokenize(candidate), tokenize(reference)
    roots = [find_language(language).parse(text.encode(errors="replace")) for text in (candidate, reference)]
    flow: float | None = None
    if expected_items := data_flow(roots[1], language):
        common = Counter(data_flow(roots[0], language)) & Counter(expected_items)
        flow = common.total() / len(expected_items)
    return CodeBleuParts(
        1.0 if tokens == expected else _bleu(tokens, expected),
        1.0 if tokens == expected else weighted_recall(tokens, expected, keywords()[language]),
        syntax_match(*roots),
        flow,
    )


def _bleu(tokens: Sequence[str], expected: Sequence[str]) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    return float(sentence_bleu([expected], tokens, smoothing_function=SmoothingFunction().method1))


def weighted_recall(tokens: Sequence[str], expected: Sequence[str], important: Collection[str]) -> float:
    """Compute the weighted n-gram match: the geometric mean of the recall of n-grams, for n from 1 to 4.

    Args:
        tokens: The tokens of the candidate.
        expected: The tokens of the reference.
        important: The keywords of the language. For n = 1, keywords have the weight 1, and all other tokens
            have the weight 0.2. For larger n, all n-grams have the weight 1.

    Returns:
        A value from 0 to 1; 0 if no token of the reference is in the candidate.
    """
    logs = 0.0
    for order in (1, 2, 3, 4):
        found, wanted = (Counter(ngrams(text, order)) for text in (tokens, expected))
        matches = found & wanted
        if order == 1 and not matches:
            return 0.0
        weights = {
            ngram: _OTHER_TOKENS if order == 1 and ngram[0] not in important else 1.0 for ngram in wanted
        }
        numerator, total = (
            sum(weights[ngram] * count for ngram, count in counts.items()) for counts in (matches, wanted)
        )
        logs += math.log((numerator or _SMOOTHING) / max(1, total))
    return min(1.0, math.exp(logs / 4))


@cache
def keywords() -> dict[str, frozenset[str]]:
    """Return a dict from the name of each programming language to its keywords."""
    lines = (line for _, line in read_lines.lines(Path(__file__).with_name("codebleu_keywords.txt")))
    rows = (line.split(": ") for line in lines if not line.startswith("#"))
    return {language: frozenset(words.split()) for language, words in rows}


def syntax_match(candidate: Node, reference: Node) -> float:
    """Compute the share of the reference's subtrees that also occur in the candidate.

    A subtree is a node with everything below it. Single leaves do not count, unless the root is a leaf.
    Subtrees are equal if they have the same s-expression in tree-sitter, which shows the types of the nodes,
    but not the text: `a + b` equals `x + y`. Comments are ignored.

    Args:
        candidate: The root of the candidate's syntax tree.
        reference: The root of the reference's syntax tree.
    """
    numbers: dict[object, int] = {}
    found, wanted = set(_subtrees(candidate, numbers)), _subtrees(reference, numbers)
    return sum(number in found for number in wanted) / len(wanted)


def _subtrees(root: Node, numbers: dict[object, int]) -> list[int]:
    """Give each subtree of a syntax tree an identifying number, so that subtrees can be compared quickly.

    A subtree is a node with everything below it. Equal subtrees get equal numbers.

    Args:
        root: The root of the syntax tree.
        numbers: The numbers that were given so far: a dict from a description of a subtree to its number. New
            subtrees are added. To compare two trees, call this function with the same dict for both.

    Returns:
        The numbers of the subtrees. Single leaves are left out, unless the root is a leaf.
    """
    found: list[int] = []
    # A node, the name of its field, the parts of its parent, its own parts, and whether these are complete.
    stack: list[tuple[Node, str | None, _Parts, _Parts, bool]] = [(root, None, [], [], False)]
    while stack:
        node, name, above, parts, is_complete = stack.pop()
        if "comment" in node.type:
            continue
        if not is_complete:
            stack.append((node, name, above, parts, True))
            for at, child in reversed(list(enumerate(node.children))):
                stack.append((child, node.field_name_for_child(at), parts, [], False))
        elif node.is_named or node.is_missing:
            error = node.text if node.is_error and not node.child_count else None
            number = numbers.setdefault((node.type, node.is_missing, error, *parts), len(numbers))
            above.append((name, number))
            if node.child_count or node is root:
                found.append(number)
    return found
