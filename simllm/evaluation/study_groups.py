"""Agreement within the parts of a rated set (RQ5): by language, by system, by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation.ratings import Ratings
from simllm.stats.correlation import rank_correlations

_FEWEST = 20  # pairs; of fewer a correlation says nothing


@dataclass(frozen=True)
class Group:
    """One part of a set, and each metric's Spearman correlation in it."""

    by: str  # language, system or length
    label: str
    pairs: int
    spearman: dict[str, float]


def groups(rated: Ratings, values: dict[str, NDArray[np.float64]]) -> list[Group]:
    """The parts with twenty pairs or more; what has one part only is not parted."""
    labels = {**rated.groups, "length": _lengths(rated.references)}
    found = []
    for by, given in labels.items():
        of = np.array(given)
        parts = [
            label for label in dict.fromkeys(sorted(given, key=_in_order)) if (of == label).sum() >= _FEWEST
        ]
        for label in parts if len(parts) > 1 else ():
            rows = of == label
            scores = np.stack([of_metric[rows] for of_metric in values.values()])
            rho = rank_correlations(scores, np.broadcast_to(rated.values[rows], scores.shape))
            found.append(Group(by, label, int(rows.sum()), dict(zip(values, rho.tolist(), strict=True))))
    return found


def _lengths(references: Sequence[str]) -> list[str]:
    """A third of the texts each, by number of words; texts of one length stay together."""
    words = np.array([len(text.split()) for text in references])
    third = np.searchsorted(np.quantile(words, [1 / 3, 2 / 3], method="lower"), words)
    spans = [(int(words[third == part].min()), int(words[third == part].max())) for part in third]
    return [f"{a} word{'s' * (a > 1)}" if a == b else f"{a} to {b} words" for a, b in spans]


def _in_order(label: str) -> tuple[float, str]:
    """Labels that begin with a number by that, others by name."""
    first = label.split()[0] if label else ""
    return (float(first), "") if first.isdigit() else (-1, label)
