"""CrystalBLEU (Eghbali and Pradel, 2022): BLEU-4 that ignores n-grams which most code shares."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.code.normal_form import normal_forms
from simllm.errors import InputError
from simllm.io import files
from simllm.io.strict_loading import read_json
from simllm.metrics.code.compared_texts import NGram, ngrams, tokenize
from simllm.metrics.protocol import Example

Ints = NDArray[np.int_]
SharedNGrams = dict[str, frozenset[NGram]]  # by language
SHARED = 500  # n-grams that are ignored by default
_ORDERS = (1, 2, 3, 4)
_EPSILON = 1e-4  # smoothing method 1: replaces a numerator of 0


def crystal_bleu(candidate: str, reference: str, shared: Collection[NGram]) -> float:
    """Compute CrystalBLEU of a candidate and a reference.

    N-grams that are shared by most code are not counted, neither in the candidate nor in the reference. The
    brevity penalty still uses the full lengths.

    Args:
        candidate: The code to judge.
        reference: The code to compare it with.
        shared: The n-grams to ignore.

    Returns:
        A value from 0 to 1. It is 1 for equal token lists, and 0 if no token is common.
    """
    tokens, expected = tokenize(candidate), tokenize(reference)
    if tokens == expected:
        return 1.0
    return _bleu(_count_matches(tokens, expected, shared), len(tokens), len(expected))


def corpus_crystal_bleu(pairs: Iterable[tuple[str, str, Collection[NGram]]]) -> float:
    """Compute CrystalBLEU of a corpus: n-grams and lengths are summed over all pairs first.

    Args:
        pairs: For each pair, the candidate, the reference, and the n-grams to ignore.

    Returns:
        A value from 0 to 1; 0 if no token is common.
    """
    counts, length, expected_length = np.zeros((len(_ORDERS), 2), int), 0, 0
    for candidate, reference, shared in pairs:
        tokens, expected = tokenize(candidate), tokenize(reference)
        counts += _count_matches(tokens, expected, shared)
        length, expected_length = length + len(tokens), expected_length + len(expected)
    return _bleu(counts, length, expected_length)


def _count_matches(tokens: Sequence[str], expected: Sequence[str], shared: Collection[NGram]) -> Ints:
    """Count for each n from 1 to 4 the candidate's n-grams that the reference has, and all its n-grams.

    Returns:
        (4, 2) counts; a total of 0 counts as 1.
    """
    rows = []
    for order in _ORDERS:
        counts, wanted = (_count(text, order, shared) for text in (tokens, expected))
        rows.append([(counts & wanted).total(), max(1, counts.total())])
    return np.array(rows)


def _bleu(counts: Ints, length: int, expected_length: int) -> float:
    """Combine counts of n-grams, of shape (4, 2), by BLEU's geometric mean and brevity penalty."""
    if not counts[0, 0]:
        return 0.0
    logs = [math.log((matches or _EPSILON) / total) for matches, total in counts.tolist()]
    return math.exp(min(0.0, 1 - expected_length / length) + sum(logs) / len(logs))


def _count(tokens: Sequence[str], order: int, shared: Collection[NGram]) -> Counter[NGram]:
    """Count the n-grams of one order, without the shared ones."""
    return Counter(ngram for ngram in ngrams(tokens, order) if ngram not in shared)


def count_shared(texts: Iterable[str], language: str, k: int = SHARED) -> list[tuple[NGram, int]]:
    """Find the most frequent n-grams in code, of orders 1 to 4 together.

    Args:
        texts: Pieces of code; n-grams do not cross from one to the next.
        language: Their language, such as "java".
        k: The number of n-grams.

    Returns:
        The n-grams with their counts, the most frequent first; equal counts in the order of the n-grams.
    """
    counts: Counter[NGram] = Counter()
    for text in texts:
        (lines,) = normal_forms([text], language)
        tokens = tokenize("\n".join(lines))
        for order in _ORDERS:
            counts.update(ngrams(tokens, order))
    least = min(nlargest(k, counts.values()), default=0)
    frequent = [item for item in counts.items() if item[1] >= least]
    return sorted(frequent, key=lambda item: (-item[1], item[0]))[:k]


def shared_of_references(examples: Sequence[Example]) -> SharedNGrams:
    """Find the most frequent n-grams in the references of each language."""
    references: dict[str, list[str]] = {}
    for example in examples:
        references.setdefault(example.language or "", []).append(example.reference)
    return {
        language: frozenset(ngram for ngram, _ in count_shared(texts, language))
        for language, texts in references.items()
    }


def save_shared(file: Path, shared: dict[str, list[tuple[NGram, int]]]) -> None:
    """Write shared n-grams by language, as JSON with their counts."""
    rows = {language: [[list(ngram), count] for ngram, count in found] for language, found in shared.items()}
    files.write(file, json.dumps({"shared_ngrams": rows}, ensure_ascii=False, indent=0) + "\n")


def load_shared(file: Path) -> SharedNGrams:
    """Read shared n-grams by language.

    Raises:
        InputError: The file cannot be read, or was not written by `simllm frequencies --ngrams`.
    """
    shared: Any = read_json(file).get("shared_ngrams")
    try:
        return {name: frozenset(tuple(ngram) for ngram, _ in rows) for name, rows in shared.items()}
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{file}: was not written by `simllm frequencies --ngrams`") from None
