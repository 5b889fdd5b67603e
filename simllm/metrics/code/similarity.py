"""Tokens of code and their n-grams, for the BLEU metrics of code."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from simllm.code.line_diff import line_edit
from simllm.code.normal_form import normal_forms
from simllm.code.tree_distance import OrderedTree, syntax_tree, tree_edit_distance
from simllm.metrics.interface import Example

NGram = tuple[str, ...]
_TOKEN = re.compile(r"\w+|[^\w\s]")


def tokenize(text: str) -> list[str]:
    """Split code into words and single punctuation characters: `x1+=2` becomes `x1`, `+`, `=`, `2`."""
    return _TOKEN.findall(text)


def ngrams(tokens: Sequence[str], order: int) -> Iterator[NGram]:
    """Yield the n-grams of a list of tokens, where n is `order`."""
    return zip(*(tokens[start:] for start in range(order)), strict=False)


_CACHED = 1024  # edits; several metrics score the same examples
TextScore = Callable[[str, str], float]  # takes the text of the candidate and that of the reference


@dataclass(frozen=True)
class Edits:
    """The edited lines of candidate and reference, each with its sign "-" (deleted) or "+" (inserted).

    Attributes:
        no_code: True if the normal form of the candidate is empty, but not that of the reference.
    """

    candidate: list[str]
    reference: list[str]
    no_code: bool


@lru_cache(_CACHED)
def edits(example: Example) -> Edits:
    """Find the edited lines of an example's candidate and of its reference."""
    language = example.language or ""
    pair = normal_forms([example.candidate, example.reference], language)
    # Equal normal forms must have equal edits, even if the source does not parse, so that layout counts.
    own = example.reference if pair[0] == pair[1] else example.candidate
    source, candidate, reference = normal_forms([example.source or "", own, example.reference], language)
    no_code = bool(reference) and not candidate
    return Edits(line_edit(source, candidate), line_edit(source, reference), no_code)


def compare_whole(example: Example, score: TextScore) -> float:
    """Score the normal forms of candidate and reference.

    Two empty texts score 1; an empty and a non-empty text score 0.
    """
    return _compare(*whole_lines(example), score)


def whole_lines(example: Example) -> tuple[list[str], list[str]]:
    """Return the lines of the normal forms of candidate and reference."""
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return candidate, reference


def compare_edits(example: Example, score: TextScore) -> float:
    """Score the candidate's edited lines against the reference's edited lines.

    The score is 1 if neither has edited lines. It is 0 if only one of the two has, or if only the candidate
    has no code.
    """
    # An empty candidate deletes every line, which would match the lines that the reference deletes.
    return 0.0 if edits(example).no_code else _compare(*edited_lines(example), score)


def edited_lines(example: Example) -> tuple[list[str], list[str]]:
    """Return the edited lines of candidate and reference, without signs."""
    found = edits(example)
    return without_signs(found.candidate), without_signs(found.reference)


def _compare(candidate: list[str], reference: list[str], score: TextScore) -> float:
    if not candidate or not reference:
        return float(not candidate and not reference)
    return score("\n".join(candidate), "\n".join(reference))


def without_signs(edit: Sequence[str]) -> list[str]:
    """Return the lines of an edit without the sign "-" (deleted) or "+" (inserted) before each line."""
    return [line[1:] for line in edit]


def exact_match(example: Example) -> float:
    """Return 1 if candidate and reference have equal normal forms, else 0."""
    candidate, reference = normal_forms([example.candidate, example.reference], example.language or "")
    return float(candidate == reference)


def lemod(example: Example, part: str, multiset: bool) -> float:
    """Compute LEMOD: "precision", "recall" or "f1" of the candidate's edited lines.

    The score is 1 if neither version edits a line, and 0 if only the candidate has no code. See
    `distinct_lines` for `multiset`.
    """
    found = edits(example)
    candidate, reference = (distinct_lines(edit, multiset) for edit in (found.candidate, found.reference))
    if found.no_code:
        return 0.0
    if not candidate and not reference:
        return 1.0
    return agreement((candidate & reference).total(), candidate.total(), reference.total(), part)


def agreement(common: int, edited: int, expected: int, part: str) -> float:
    """Compute "precision", "recall" or "f1" from numbers of edited lines; 0 / 0 counts as 0.

    `common` lines are those of both, `edited` those of the candidate, `expected` those of the reference.
    """
    over = {"precision": edited, "recall": expected, "f1": (edited + expected) / 2}[part]
    return common / over if over else 0.0


def distinct_lines(edit: list[str], multiset: bool) -> Counter[str]:
    """Count the edited lines, each with its sign "-" or "+", without white space at both ends.

    With `multiset`, repeated lines are counted, and "-x" differs from "+x". Otherwise the sign is removed,
    and each distinct line counts once.
    """
    if multiset:
        return Counter(line[0] + line[1:].strip() for line in edit)
    return Counter({line.strip(): 1 for line in without_signs(edit)})


def levenshtein_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (Levenshtein distance) / (length of the longer text)."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(candidate, reference))


def indel_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (smallest number of insertions and deletions) / (sum of both lengths)."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(candidate, reference))


def bleu_of_tokens(candidate: str, reference: str) -> float:
    """Compute BLEU-4 of two pieces of code, from 0 to 1; equal lists of tokens score 1, even if empty."""
    tokens, expected = tokenize(candidate), tokenize(reference)
    return 1.0 if tokens == expected else bleu_of_lists(tokens, expected)


def bleu_of_lists(tokens: Sequence[str], expected: Sequence[str]) -> float:
    """Compute BLEU-4 of the tokens of a candidate and of a reference (`expected`)."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    return float(sentence_bleu([expected], tokens, smoothing_function=SmoothingFunction().method4))


def corpus_bleu_of_tokens(pairs: Iterable[tuple[str, str]]) -> float:
    """Compute one BLEU-4 from n-gram counts and lengths that are summed over candidates and references."""
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    tokens = [(tokenize(candidate), [tokenize(reference)]) for candidate, reference in pairs]
    candidates, references = zip(*tokens, strict=True)
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method4))


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


def chrf_of_code(candidate: str, reference: str) -> float:
    """Compute chrF (character n-gram F-score; Popović, 2015) by sacrebleu; return a value from 0 to 1."""
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().sentence_score(candidate, [reference]).score) / 100
