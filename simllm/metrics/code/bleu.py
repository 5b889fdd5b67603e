"""BLEU of code, and CrystalBLEU, which ignores n-grams that most code has, such as `) ;`.

CrystalBLEU is by Eghbali and Pradel (2022). The ignored n-grams are called *shared*.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from simllm.array_types import Ints
from simllm.code.normal_form import normal_forms
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.reading import read_json
from simllm.metrics.code.code_metric import CodeScorer, Items
from simllm.metrics.code.similarity import Pair, compare, corpus_pairs, edited_lines, whole_lines
from simllm.metrics.interface import Example

NGram = tuple[str, ...]
SharedNGrams = dict[str, frozenset[NGram]]  # by language
SHARED = 500  # number of n-grams that are ignored by default
_ORDERS = (1, 2, 3, 4)
_EPSILON = 1e-4  # smoothing method 1: replaces a numerator of 0
_TOKEN = re.compile(r"\w+|[^\w\s]")


def tokenize(text: str) -> list[str]:
    """Split code into words and single punctuation characters: `x1+=2` becomes `x1`, `+`, `=`, `2`."""
    return _TOKEN.findall(text)


def ngrams(tokens: Sequence[str], order: int) -> Iterator[NGram]:
    """Yield the n-grams of a list of tokens, where n is `order`."""
    return zip(*(tokens[start:] for start in range(order)), strict=False)


def load_bleu(of_edits: bool) -> CodeScorer:
    """BLEU-4 over the tokens of the whole code, or only of the edited lines."""
    lines_of = edited_lines if of_edits else whole_lines
    return CodeScorer(
        lambda examples: compare(examples, lines_of, _bleu_of_pairs),
        lambda items: corpus_bleu_of_tokens(corpus_pairs(items, lines_of)),
    )


def _bleu_of_pairs(pairs: Sequence[Pair]) -> list[float]:
    return [bleu_of_tokens(one.candidate, one.reference) for one in pairs]


def bleu_of_tokens(candidate: str, reference: str) -> float:
    """Compute BLEU-4 of two pieces of code, from 0 to 1; equal lists of tokens score 1, even if empty."""
    tokens, expected = tokenize(candidate), tokenize(reference)
    return 1.0 if tokens == expected else bleu_of_lists(tokens, expected)


def bleu_of_lists(tokens: Sequence[str], expected: Sequence[str]) -> float:
    """Compute BLEU-4 of the tokens of a candidate and of a reference (`expected`)."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    return float(sentence_bleu([expected], tokens, smoothing_function=SmoothingFunction().method4))


def corpus_bleu_of_tokens(pairs: Iterable[Pair]) -> float:
    """Compute one BLEU-4 from n-gram counts and lengths that are summed over candidates and references."""
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    tokens = [(tokenize(one.candidate), [tokenize(one.reference)]) for one in pairs]
    candidates, references = zip(*tokens, strict=True)
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method4))


def load_crystalbleu(argument: str, of_edits: bool) -> CodeScorer:
    """CrystalBLEU of the whole code, or only of the edited lines.

    `argument` is a file with the n-grams to ignore. If it is empty, the most frequent n-grams in the
    references of the examples are ignored.
    """
    lines_of = edited_lines if of_edits else whole_lines
    # Read before any example, so that a damaged file is found at once.
    given = load_shared(Path(argument)) if argument else None

    def shared_of(examples: Sequence[Example]) -> SharedNGrams:
        shared = shared_of_references(examples) if given is None else given
        if missing := sorted({example.language or "" for example in examples} - shared.keys()):
            raise InputError(f"{argument}: has no n-grams of {missing[0]}")
        return shared

    def compute(examples: Sequence[Example]) -> list[float]:
        shared = shared_of(examples)
        # A file may have fewer n-grams on purpose.
        if given is None:
            _warn_if_few(shared)

        def score(pairs: Sequence[Pair]) -> list[float]:
            return [crystal_bleu(one.candidate, one.reference, shared[one.language]) for one in pairs]

        return compare(examples, lines_of, score)

    def corpus(items: Items) -> float:
        shared = shared_of(list(chain.from_iterable(items)))
        return _corpus_crystal_bleu(corpus_pairs(items, lines_of), shared)

    return CodeScorer(compute, corpus)


def crystal_bleu(candidate: str, reference: str, shared: Collection[NGram]) -> float:
    """Compute CrystalBLEU of a candidate and a reference, from 0 to 1.

    Equal token lists score 1. The score is 0 if no single token matches, apart from shared ones.
    """
    tokens, expected = tokenize(candidate), tokenize(reference)
    if tokens == expected:
        return 1.0
    # The penalty for short candidates counts all tokens, including the shared ones.
    return _bleu(_count_matches(tokens, expected, shared), len(tokens), len(expected))


def _corpus_crystal_bleu(pairs: Iterable[Pair], shared: SharedNGrams) -> float:
    """Compute one CrystalBLEU from n-gram counts and lengths that are summed over all pairs."""
    counts, length, expected_length = np.zeros((len(_ORDERS), 2), int), 0, 0
    for candidate, reference, language in pairs:
        tokens, expected = tokenize(candidate), tokenize(reference)
        counts += _count_matches(tokens, expected, shared[language])
        length, expected_length = length + len(tokens), expected_length + len(expected)
    return _bleu(counts, length, expected_length)


def _count_matches(tokens: Sequence[str], expected: Sequence[str], shared: Collection[NGram]) -> Ints:
    """Count (4, 2) n-grams: for each n, those of the candidate that match, and all of the candidate."""
    rows = []
    for order in _ORDERS:
        counts, wanted = (_count(text, order, shared) for text in (tokens, expected))
        # BLEU divides by the second count, and a short candidate has no 4-grams.
        rows.append([(counts & wanted).total(), max(1, counts.total())])
    return np.array(rows)


def _bleu(counts: Ints, length: int, expected_length: int) -> float:
    """Compute BLEU from (4, 2) counts as of `_count_matches`, and from both lengths in tokens."""
    if not counts[0, 0]:
        return 0.0
    logs = [math.log((matches or _EPSILON) / total) for matches, total in counts.tolist()]
    return math.exp(min(0.0, 1 - expected_length / length) + sum(logs) / len(logs))


def _count(tokens: Sequence[str], order: int, shared: Collection[NGram]) -> Counter[NGram]:
    """Count the n-grams, where n is `order`, that are not shared."""
    return Counter(ngram for ngram in ngrams(tokens, order) if ngram not in shared)


def count_shared(texts: Iterable[str], language: str, k: int = SHARED) -> list[tuple[NGram, int]]:
    """Find the k most frequent n-grams in pieces of code, for n from 1 to 4 together, with their counts.

    The most frequent n-gram comes first; equal counts are sorted by tokens. An n-gram never spans two pieces.
    """
    counts: Counter[NGram] = Counter()
    for text in texts:
        try:
            (lines,) = normal_forms([text], language)
        except TimeoutError:  # it gets no score either
            continue
        tokens = tokenize("\n".join(lines))
        for order in _ORDERS:
            counts.update(ngrams(tokens, order))
    # Sorting only the n-grams that can be among the k saves most of the time: a corpus has millions.
    least = min(nlargest(k, counts.values()), default=0)
    frequent = [item for item in counts.items() if item[1] >= least]
    return sorted(frequent, key=lambda item: (-item[1], item[0]))[:k]


def shared_of_references(examples: Sequence[Example]) -> SharedNGrams:
    """Find the 500 n-grams of each language that are most frequent in the references of the examples."""
    references: dict[str, list[str]] = {}
    # A reference counts once, even if many candidates for the same source are compared with it.
    found = dict.fromkeys((each.language or "", each.source, each.reference or "") for each in examples)
    for language, _, reference in found:
        references.setdefault(language, []).append(reference)
    return {language: _shared_of_texts(tuple(texts), language) for language, texts in references.items()}


@lru_cache(32)  # the corpus value of each system has the same references as the scores
def _shared_of_texts(texts: tuple[str, ...], language: str) -> frozenset[NGram]:
    return frozenset(ngram for ngram, _ in count_shared(texts, language))


def _warn_if_few(shared: SharedNGrams) -> None:
    """Warn if a language has fewer than 500 shared n-grams: all n-grams of its references."""
    if min(map(len, shared.values()), default=SHARED) < SHARED:
        warnings.warn(
            f"CrystalBLEU ignores {SHARED} n-grams; the references have fewer, and all are ignored. "
            f"Name a file of n-grams: crystalbleu=FILE",
            stacklevel=3,
        )


def save_shared(file: Path, shared: dict[str, list[tuple[NGram, int]]]) -> None:
    """Write a JSON file of shared n-grams with their counts."""
    rows = {language: [[list(ngram), count] for ngram, count in found] for language, found in shared.items()}
    output_file.write(file, json.dumps({"shared_ngrams": rows}, ensure_ascii=False, indent=0) + "\n")


def load_shared(file: Path) -> SharedNGrams:
    """Read the shared n-grams in a file of `simllm frequencies --ngrams`."""
    shared: Any = read_json(file).get("shared_ngrams")
    try:
        return {name: frozenset(tuple(ngram) for ngram, _ in rows) for name, rows in shared.items()}
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{file}: was not written by `simllm frequencies --ngrams`") from None
