"""The contrast set: triples of a reference, a rewording and a change of its meaning.

A metric should score the rewording higher than the change. In the form "balanced", both share equally
many words with the reference, so that metrics of word overlap are right in half of the triples. In
the form "adversarial", the change shares more words, so that they are never right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.io.files import objects, text_under
from simllm.metrics.protocol import ScoreFunction
from simllm.text_cleaning import clean

CONTRAST_SET = Path(__file__).parent / "contrast.jsonl"  # written for simllm; see `deciding_word_pairs`
_FIELDS = ("reference", "rewording", "change", "kind", "form")


@dataclass(frozen=True)
class Triples:
    """n triples of reference, rewording and change, each with a kind of change and a form."""

    references: list[str]
    rewordings: list[str]
    changes: list[str]
    kinds: list[str]
    forms: list[str]


def load(file: Path = CONTRAST_SET) -> Triples:
    """Load triples from JSON lines with `reference`, `rewording`, `change`, `kind` and `form`.

    Raises:
        InputError: The file cannot be read, is empty, or a line lacks a field.
    """
    rows = [[text_under(row, field, where) for field in _FIELDS] for where, row in objects(file)]
    if not rows:
        raise InputError(f"{file}: no triples")
    return Triples(*(list(column) for column in zip(*rows, strict=True)))


def rewording_wins(score: ScoreFunction, triples: Triples) -> NDArray[np.float64]:
    """Compare the scores of rewordings and changes.

    Args:
        score: The scoring function of a metric.
        triples: n triples.

    Returns:
        (n,) values: 1 if the rewording scores higher, 0.5 for a tie, 0 if the change scores higher.
    """
    same = score(triples.rewordings, triples.references)
    other = score(triples.changes, triples.references)
    return (np.sign(same - other) + 1) / 2


def clean_triples(triples: Triples) -> Triples:
    """Clean the texts of triples like simllm does, so that case and markup do not affect any metric."""
    columns = (triples.references, triples.rewordings, triples.changes)
    references, rewordings, changes = ([clean(text) for text in texts] for texts in columns)
    return Triples(references, rewordings, changes, triples.kinds, triples.forms)


def accuracies(score: ScoreFunction, triples: Triples) -> list[float]:
    """Return the accuracy on all triples, on each form and on each kind, in order of appearance."""
    wins = rewording_wins(score, triples)
    by_form, by_kind = (mean_by_label(labels, wins) for labels in (triples.forms, triples.kinds))
    return [float(wins.mean()), *by_form.values(), *by_kind.values()]


def mean_by_label(labels: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean of the (n,) values with each label, in order of appearance."""
    place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    of = np.array([place[label] for label in labels], int)
    means = np.bincount(of, weights=values) / np.bincount(of)
    return dict(zip(place, means.tolist(), strict=True))


def deciding_word_pairs(file: Path = CONTRAST_SET) -> set[tuple[str, str]]:
    """Return the pairs of words in which a reference differs from its change or rewording.

    To test a model on unseen words, its training data must not contain these pairs.
    """
    triples = load(file)
    pairs = set()
    for reference, form, *others in zip(
        triples.references, triples.forms, triples.changes, triples.rewordings, strict=True
    ):
        # In other forms than "balanced", the rewording is a completely different sentence.
        for other in others[: 2 if form == "balanced" else 1]:
            a, b = (re.findall(r"[\w-]+", text.lower()) for text in (reference, other))
            if len(a) == len(b):
                pairs |= {(x, y) for x, y in zip(a, b, strict=True) if x not in b and y not in a}
    return pairs
