"""The contrast set: triples of a reference, a rewording and a change of its meaning.

A metric should score the rewording higher than the change. In form "balanced" both share as many
words with the reference, so that overlap metrics get half of these right. In form "adversarial" the
change shares more, so that they get none right.
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
from simllm.metrics.protocol import Score
from simllm.text import clean

CONTRAST_SET = Path(__file__).parent / "contrast.jsonl"  # written for simllm; see `deciding_word_pairs`
_FIELDS = ("reference", "rewording", "change", "kind", "form")


@dataclass(frozen=True)
class Triples:
    """n triples."""

    references: list[str]
    rewordings: list[str]
    changes: list[str]
    kinds: list[str]
    forms: list[str]


def load(file: Path = CONTRAST_SET) -> Triples:
    """Read JSON lines with `reference`, `rewording`, `change`, `kind` and `form`.

    Raises InputError that names the file, the line and what was expected there.
    """
    rows = [[text_under(row, field, where) for field in _FIELDS] for where, row in objects(file)]
    if not rows:
        raise InputError(f"{file}: no triples")
    return Triples(*(list(column) for column in zip(*rows, strict=True)))


def wins(score: Score, triples: Triples) -> NDArray[np.float64]:
    """Compare rewordings with changes: (n,) 1 where the rewording scores higher, 0.5 for a tie, else 0."""
    same = score(triples.rewordings, triples.references)
    other = score(triples.changes, triples.references)
    return (np.sign(same - other) + 1) / 2


def cleaned(triples: Triples) -> Triples:
    """Clean the texts of the triples as simllm does, so that no metric gains or loses by case or markup."""
    columns = (triples.references, triples.rewordings, triples.changes)
    references, rewordings, changes = ([clean(text) for text in texts] for texts in columns)
    return Triples(references, rewordings, changes, triples.kinds, triples.forms)


def accuracies(score: Score, triples: Triples) -> list[float]:
    """The share of wins: of all triples, of each form, of each kind (in order of appearance)."""
    won = wins(score, triples)
    return [float(won.mean()), *by(triples.forms, won).values(), *by(triples.kinds, won).values()]


def by(labels: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    """Average the (n,) values of each label, in order of appearance."""
    place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    of = np.array([place[label] for label in labels], int)
    means = np.bincount(of, weights=values) / np.bincount(of)
    return dict(zip(place, means.tolist(), strict=True))


def deciding_word_pairs(file: Path = CONTRAST_SET) -> set[tuple[str, str]]:
    """Return the pairs of words by which the two sentences of a comparison differ.

    A model that learns from word lists must leave these pairs out, to be tested on words that it has
    not seen.
    """
    triples = load(file)
    pairs = set()
    for reference, form, *others in zip(
        triples.references, triples.forms, triples.changes, triples.rewordings, strict=True
    ):
        for other in others[: 2 if form == "balanced" else 1]:  # else the rewording is another sentence
            a, b = (re.findall(r"[\w-]+", text.lower()) for text in (reference, other))
            if len(a) == len(b):
                pairs |= {(x, y) for x, y in zip(a, b, strict=True) if x not in b and y not in a}
    return pairs
