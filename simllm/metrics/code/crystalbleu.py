"""CrystalBLEU (Eghbali and Pradel, 2022): BLEU-4 that ignores n-grams which most code has, such as `) ;`."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np

from simllm.array_types import Ints
from simllm.code.code_normalization import normal_forms
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.read_json_object import read_json
from simllm.metrics.code.built_in_code_metrics import FILE
from simllm.metrics.code.code_tokens import NGram, ngrams, tokenize
from simllm.metrics.metric_interface import Example

SharedNGrams = dict[str, frozenset[NGram]]  # by language
SHARED = 500  # number of n-grams that are ignored by default
_ORDERS = (1, 2, 3, 4)
_EPSILON = 1e-4  # smoothing method 1: replaces a numerator of 0


def crystal_bleu(candidate: str, reference: str, shared: Collection[NGram]) -> float:
    """Compute CrystalBLEU of a candidate and a reference.

    CrystalBLEU is BLEU-4 that ignores n-grams which most code has, such as `) ;`. BLEU's penalty for short
    candidates is computed from all tokens, including the ignored ones.

    Args:
        candidate: The code to judge.
        reference: The code to compare it with.
        shared: The n-grams to ignore.

    Returns:
        A value from 0 to 1. It is 1 for equal token lists. It is 0 if candidate and reference have no token
        in common, apart from ignored tokens.
    """
    tokens, expected = tokenize(candidate), tokenize(reference)
    if tokens == expected:
        return 1.0
    return _bleu(_count_matches(tokens, expected, shared), len(tokens), len(expected))


def corpus_crystal_bleu(pairs: Iterable[tuple[str, str, Collection[NGram]]]) -> float:
    """Compute CrystalBLEU of a corpus from n-gram counts and text lengths, summed over all pairs.

    CrystalBLEU is BLEU-4 that ignores n-grams which most code has, such as `) ;`.

    Args:
        pairs: For each pair, the candidate, the reference, and the n-grams to ignore.

    Returns:
        A value from 0 to 1. It is 0 if no candidate has a token in common with its reference, apart from
        ignored tokens.
    """
    counts, length, expected_length = np.zeros((len(_ORDERS), 2), int), 0, 0
    for candidate, reference, shared in pairs:
        tokens, expected = tokenize(candidate), tokenize(reference)
        counts += _count_matches(tokens, expected, shared)
        length, expected_length = length + len(tokens), expected_length + len(expected)
    return _bleu(counts, length, expected_length)


def _count_matches(tokens: Sequence[str], expected: Sequence[str], shared: Collection[NGram]) -> Ints:
    """Count the n-grams that BLEU needs, for each n from 1 to 4.

    Args:
        tokens: The tokens of the candidate.
        expected: The tokens of the reference.
        shared: The n-grams to ignore.

    Returns:
        (4, 2) counts, one row for each n, without the n-grams in `shared`. The first column counts the
        n-grams of the candidate that the reference has, too. The second column counts all n-grams of the
        candidate. In the second column, 0 is replaced by 1, because BLEU divides by these counts.
    """
    rows = []
    for order in _ORDERS:
        counts, wanted = (_count(text, order, shared) for text in (tokens, expected))
        rows.append([(counts & wanted).total(), max(1, counts.total())])
    return np.array(rows)


def _bleu(counts: Ints, length: int, expected_length: int) -> float:
    """Compute BLEU from counts of n-grams: the geometric mean of precisions, times the brevity penalty.

    For the BLEU of a corpus, all arguments are sums over the pairs of candidate and reference.

    Args:
        counts: (4, 2) counts, one row for each n from 1 to 4. The first column counts the n-grams of the
            candidate that the reference has, too. The second column counts all n-grams of the candidate.
        length: The number of tokens of the candidate.
        expected_length: The number of tokens of the reference.

    Returns:
        A value from 0 to 1; 0 if no single token (n = 1) matches.
    """
    if not counts[0, 0]:
        return 0.0
    logs = [math.log((matches or _EPSILON) / total) for matches, total in counts.tolist()]
    return math.exp(min(0.0, 1 - expected_length / length) + sum(logs) / len(logs))


def _count(tokens: Sequence[str], order: int, shared: Collection[NGram]) -> Counter[NGram]:
    """Count the n-grams of a list of tokens, where n is `order`; n-grams in `shared` are left out."""
    return Counter(ngram for ngram in ngrams(tokens, order) if ngram not in shared)


def count_shared(texts: Iterable[str], language: str, k: int = SHARED) -> list[tuple[NGram, int]]:
    """Find the k most frequent n-grams in code, for n from 1 to 4. The metric CrystalBLEU ignores them.

    Args:
        texts: Pieces of code; an n-gram never spans two pieces.
        language: The language of all pieces, such as "java".
        k: The number of n-grams, for all n together.

    Returns:
        The n-grams with their counts, the most frequent first. N-grams with equal counts are sorted by their
        tokens.
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
    """Find the n-grams that the metric CrystalBLEU ignores when it scores the given examples.

    For each programming language, these are the 500 n-grams that are most frequent in the references. A
    reference counts once, even if many candidates for the same source are compared with it.

    Returns:
        A dict from the name of a programming language to its n-grams.
    """
    references: dict[str, list[str]] = {}
    found = dict.fromkeys((each.language or "", each.source, each.reference) for each in examples)
    for language, _, reference in found:
        references.setdefault(language, []).append(reference)
    return {
        language: frozenset(ngram for ngram, _ in count_shared(texts, language))
        for language, texts in references.items()
    }


def check_languages(shared: SharedNGrams, examples: Sequence[Example], file: str) -> None:
    """Check that the metric CrystalBLEU has n-grams to ignore for the language of each example.

    Args:
        shared: For each language, the n-grams to ignore.
        examples: The examples to score.
        file: The file with the n-grams; only its name is used, in the error message.

    Raises:
        InputError: The n-grams of a language are missing.
    """
    if missing := sorted({example.language or "" for example in examples} - shared.keys()):
        raise InputError(f"{file}: has no n-grams of {missing[0]}")


def warn_if_few(shared: SharedNGrams) -> None:
    """Warn if the references of a programming language have fewer than 500 different n-grams.

    CrystalBLEU ignores the 500 most frequent n-grams of the references. If there are fewer than 500, it
    ignores all of them.

    Args:
        shared: For each language, the n-grams to ignore, at most 500.
    """
    if min(map(len, shared.values()), default=SHARED) < SHARED:
        warnings.warn(
            f"CrystalBLEU ignores {SHARED} n-grams; the references have fewer, and all are ignored. "
            f"Name a file of n-grams: crystalbleu={FILE}",
            stacklevel=3,
        )


def save_shared(file: Path, shared: dict[str, list[tuple[NGram, int]]]) -> None:
    """Write a JSON file of n-grams that the metric CrystalBLEU ignores.

    Args:
        file: The file to write.
        shared: A dict from the name of a programming language to its n-grams with their counts.
    """
    rows = {language: [[list(ngram), count] for ngram, count in found] for language, found in shared.items()}
    output_file.write(file, json.dumps({"shared_ngrams": rows}, ensure_ascii=False, indent=0) + "\n")


def load_shared(file: Path) -> SharedNGrams:
    """Read a JSON file of n-grams that the metric CrystalBLEU ignores.

    Args:
        file: A file that `simllm frequencies --ngrams` wrote.

    Returns:
        A dict from the name of a programming language to its n-grams.

    Raises:
        InputError: The file cannot be read, or was not written by `simllm frequencies --ngrams`.
    """
    shared: Any = read_json(file).get("shared_ngrams")
    try:
        return {name: frozenset(tuple(ngram) for ngram, _ in rows) for name, rows in shared.items()}
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{file}: was not written by `simllm frequencies --ngrams`") from None
