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

from simllm.code.languages.language import find_language
from simllm.io import reading
from simllm.metrics.code.bleu import ngrams, tokenize
from simllm.metrics.code.code_metric import CodeScorer
from simllm.metrics.code.data_flow import data_flow
from simllm.metrics.code.similarity import Pair, compare, whole_lines

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
        data_flow: Share of the reference's data flow that the candidate has, too; None if the reference has
            no data flow, or if the language is not Python or Java.
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


def load_codebleu() -> CodeScorer:
    """CodeBLEU of the normal forms."""

    def score(pairs: Sequence[Pair]) -> list[float]:
        return [code_bleu(*pair).mean for pair in pairs]

    return CodeScorer(lambda examples: compare(examples, whole_lines, score))


def code_bleu(candidate: str, reference: str, language: str) -> CodeBleuParts:
    """Compute the four parts of CodeBLEU; the reference must have at least one token.

    TimeoutError if parsing takes too long.
    """
    tokens, expected = tokenize(candidate), tokenize(reference)
    codes = [text.encode(errors="replace") for text in (candidate, reference)]
    roots = [find_language(language).parse(code) for code in codes]
    flow: float | None = None
    if expected_items := data_flow(roots[1], codes[1], language):
        common = Counter(data_flow(roots[0], codes[0], language)) & Counter(expected_items)
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
    """Compute the geometric mean of the recall of n-grams, for n from 1 to 4; a value from 0 to 1.

    For n = 1, the keywords (`important`) have the weight 1, and all other tokens 0.2. For larger n, all
    n-grams have the weight 1.
    """
    logs = 0.0
    for order in (1, 2, 3, 4):
        found, wanted = (Counter(ngrams(text, order)) for text in (tokens, expected))
        matches = found & wanted
        # The smoothing would give a positive score to code that has nothing in common.
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
    """Return the keywords of each programming language."""
    lines = (line for _, line in reading.read_lines(Path(__file__).with_name("codebleu_keywords.txt")))
    rows = (line.split(": ") for line in lines if not line.startswith("#"))
    return {language: frozenset(words.split()) for language, words in rows}


def syntax_match(candidate: Node, reference: Node) -> float:
    """Compute the share of the reference's subtrees that also occur in the candidate, from the two roots.

    A subtree is a node with everything below it. Single leaves do not count, unless the root is a leaf.
    Subtrees are equal if their s-expressions in tree-sitter are equal, which show the types of the nodes, but
    not the text: `a + b` equals `x + y`. Comments are ignored.
    """
    numbers: dict[object, int] = {}
    found, wanted = set(_subtrees(candidate, numbers)), _subtrees(reference, numbers)
    return sum(number in found for number in wanted) / len(wanted)


def _subtrees(root: Node, numbers: dict[object, int]) -> list[int]:
    """Return the numbers of all subtrees; equal subtrees get equal numbers, also across calls."""
    found: list[int] = []
    # A node, the name of its field, the parts of its parent, its own parts, and whether these are complete.
    # A stack instead of recursion, because generated code may nest deeper than Python's limit. Numbers
    # instead of s-expressions, whose lengths add up to the square of the depth.
    stack: list[tuple[Node, str | None, _Parts, _Parts, bool]] = [(root, None, [], [], False)]
    while stack:
        node, name, above, parts, is_complete = stack.pop()
        if "comment" in node.type:
            continue
        if not is_complete:
            stack.append((node, name, above, parts, True))
            stack += [(child, field, parts, [], False) for child, field in reversed(_children(node))]
        elif node.is_named or node.is_missing:
            error = node.text if node.is_error and not node.child_count else None
            number = numbers.setdefault((node.type, node.is_missing, error, *parts), len(numbers))
            above.append((name, number))
            # Single leaves would match between almost any two pieces of code.
            if node.child_count or node is root:
                found.append(number)
    return found


def _children(node: Node) -> list[tuple[Node, str | None]]:
    """Return the children of a node with the names of their fields."""
    # Node.field_name_for_child counts from the first child, which takes quadratic time for all of them.
    cursor, found = node.walk(), []
    is_child = cursor.goto_first_child()
    while is_child and cursor.node:
        found.append((cursor.node, cursor.field_name))
        is_child = cursor.goto_next_sibling()
    return found
