"""CrystalBLEU (Eghbali and Pradel, 2022): BLEU-4 that ignores n-grams which most code shares."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from simllm.code.normal_form import normal_forms
from simllm.errors import InputError
from simllm.io import files
from simllm.io.strict_loading import read_json
from simllm.metrics.code.versions import NGram, ngrams, tokenize

SharedNGrams = dict[str, frozenset[NGram]]  # by language
SHARED = 500  # n-grams that are ignored by default
_ORDERS = (1, 2, 3, 4)
_EPSILON = 1e-4  # smoothing method 1: replaces a numerator of 0


def crystal_bleu(candidate: str, reference: str, shared: Collection[NGram]) -> float:
    """Compute CrystalBLEU of a candidate and a reference.

    The counts of shared n-grams are left out on both sides; the lengths of the texts stay.

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
    logs = 0.0
    for order in _ORDERS:
        counts, wanted = (_count(text, order, shared) for text in (tokens, expected))
        matches, total = (counts & wanted).total(), max(1, counts.total())
        if order == 1 and not matches:
            return 0.0
        logs += math.log((matches or _EPSILON) / total)
    brevity = min(0.0, 1 - len(expected) / len(tokens))
    return math.exp(brevity + logs / len(_ORDERS))


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
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]


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
