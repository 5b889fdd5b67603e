"""The contrast set: triples of a reference, a rewording and a text with another meaning (the change).

A metric should score the rewording higher than the change. The set has triples of two forms:

- balanced: rewording and change share equally many words with the reference. A metric that only compares
  words is right in half of these triples.
- adversarial: the change shares more words with the reference than the rewording does. A metric that only
  compares words is never right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.io.reading import objects, text_under
from simllm.metrics.interface import ScoreFunction
from simllm.text_cleaning import clean

CONTRAST_SET = Path(__file__).parent / "contrast_triples.jsonl"
_FEW = 10  # triples; a single one then moves an accuracy by more than .1
_FIELDS = ("reference", "rewording", "change", "kind", "form")


@dataclass(frozen=True)
class Triples:
    """n triples of a reference, a rewording and a change, as five lists of n texts.

    Attributes:
        kinds: The kinds of difference between change and reference, such as "negation" or "number".
        forms: The groups by which results are averaged: "balanced" or "adversarial" in the contrast set.
            Triples from other files may have other forms.
    """

    references: list[str]
    rewordings: list[str]
    changes: list[str]
    kinds: list[str]
    forms: list[str]


def load(file: Path = CONTRAST_SET) -> Triples:
    """Load triples from JSON lines with the texts `reference`, `rewording`, `change`, `kind` and `form`.

    Raises:
        InputError: The file cannot be read or is empty, or a line lacks a key.
    """
    rows = [[text_under(row, field, where) for field in _FIELDS] for where, row in objects(file)]
    if not rows:
        raise InputError(f"{file}: no triples")
    return Triples(*(list(column) for column in zip(*rows, strict=True)))


def rewording_wins(score: ScoreFunction, triples: Triples) -> NDArray[np.float64]:
    """Test for each triple whether a metric scores the rewording higher than the change.

    Args:
        score: The metric's scoring function, which takes n candidates and n references.
        triples: n triples.

    Returns:
        (n,) values: 1 if the rewording scores higher, 0.5 for a tie, 0 if the change scores higher.
    """
    return compare(score(triples.rewordings, triples.references), score(triples.changes, triples.references))


def compare(rewordings: NDArray[np.float64], changes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compare the (n,) scores of rewordings with those of changes, as `rewording_wins` does."""
    return (np.sign(rewordings - changes) + 1) / 2


def clean_triples(triples: Triples) -> Triples:
    """Clean the texts: remove comment marks, convert to lower-case ASCII, put spaces around punctuation."""
    columns = (triples.references, triples.rewordings, triples.changes)
    references, rewordings, changes = ([clean(text) for text in texts] for texts in columns)
    return Triples(references, rewordings, changes, triples.kinds, triples.forms)


def accuracies(score: ScoreFunction, triples: Triples) -> list[float]:
    """Compute the share of triples in which a metric scores the rewording higher; a tie counts half.

    Args:
        score: The metric's scoring function, which takes n candidates and n references.
        triples: n triples.

    Returns:
        Accuracies from 0 to 1: first on all triples, then on each form, then on each kind. Forms and kinds
            are in the order of their first triple.
    """
    return accuracies_of(rewording_wins(score, triples), triples)


def accuracies_of(wins: NDArray[np.float64], triples: Triples) -> list[float]:
    """Compute the accuracies of `accuracies` from the (n,) results of `rewording_wins`."""
    by_form, by_kind = (mean_by_label(labels, wins) for labels in (triples.forms, triples.kinds))
    return [float(wins.mean()), *by_form.values(), *by_kind.values()]


def warnings_about(triples: Triples) -> Iterator[str]:
    """Yield warnings about triples that say little about any metric."""
    n = len(triples.references)
    if n < _FEW:
        yield f"{n} triples are few: one of them moves an accuracy by {1 / n:.2f}"
    if alike := sum(a == b for a, b in zip(triples.rewordings, triples.changes, strict=True)):
        yield f"{alike} of {n} triples have a rewording that equals the change after cleaning; they are ties"


def mean_by_label(labels: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    """Compute the mean of (n,) values for each of n labels, in the order in which the labels first occur."""
    place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    of = np.array([place[label] for label in labels], int)
    means = np.bincount(of, weights=values) / np.bincount(of)
    return dict(zip(place, means.tolist(), strict=True))


def deciding_word_pairs(file: Path = CONTRAST_SET) -> set[tuple[str, str]]:
    """Collect the word pairs, such as "minimum" and "maximum", by which the texts of a test set differ.

    A model that is trained without these pairs can be tested on words that it has not seen. Each change is
    compared with its reference, word by word, if both have equally many words; so are the rewordings of
    balanced triples.

    Args:
        file: A file of triples (see `load`); by default, the contrast set.

    Returns:
        Pairs of two words at the same position: the first in a reference, the second in its change or
            rewording. Neither word occurs in the other text.
    """
    triples = load(file)
    pairs = set()
    for reference, form, *others in zip(
        triples.references, triples.forms, triples.changes, triples.rewordings, strict=True
    ):
        # In other forms than "balanced", the rewording is a completely different sentence.
        for other in others[: 2 if form == "balanced" else 1]:
            a, b = (re.findall(r"[\w-]+", text.lower()) for text in (reference, other))
            # With more or fewer words, no word stands opposite another.
            if len(a) == len(b):
                pairs |= {(x, y) for x, y in zip(a, b, strict=True) if x not in b and y not in a}
    return pairs
