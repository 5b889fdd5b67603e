"""Token-level precision, recall and F1 with TF-IDF weights (SIMLLM, section 4.3, eq. 5 to 8).

Every token is matched with the most similar token of the other text. The similarity is the
cosine of the two contextual states: the paper's N is read as the normalisation of an
embedding to unit length, because eq. (7) has no upper bound without it. The sums run over
the tokens as they occur, each with its inverse document frequency, so the number of
summands contains the term frequency. The boundary tokens take no part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring.encode import Ids, Tokenized, run

Floats = NDArray[np.floating]
Values = NDArray[np.float64]

_BLOCK = 1024  # tokens of each text that are compared at once; only very long texts have more
_DECIMALS = 12  # of a cosine; the rest is rounding error, which would make equal states differ


class Side(NamedTuple):
    """The tokens of one text."""

    best: Values  # (n,) cosine of each token and its most similar token of the other text
    weights: Values  # (n,) weight of each token, above 0

    @property
    def mean(self) -> float:
        """Weighted mean of the cosines, in -1..1.

        Both sums add their terms in the same order, so rounding cannot carry the mean beyond 1.
        """
        return float((self.best * self.weights).sum() / self.weights.sum())


def states(engine: Engine, texts: Tokenized, boundaries: bool = False) -> list[NDArray[np.float32]]:
    """Return the (L, D) states of each text's tokens, with or without the `boundaries` <s> and </s>."""
    edge = 0 if boundaries else 1

    def kept(hidden: Tensor, mask: Tensor) -> list[NDArray[np.float32]]:
        whole, lengths = hidden.float().cpu().numpy(), mask.sum(1).tolist()
        return [row[edge : length - edge].copy() for row, length in zip(whole, lengths, strict=True)]

    found = run(engine, texts, kept)
    return [
        found[windows[0]] if len(windows) == 1 else np.concatenate([found[ids] for ids in windows])
        for windows in texts.inputs
    ]


def tokens(windows: list[Ids]) -> NDArray[np.int64]:
    """Return the (L,) token ids of a text, without <s> and </s>."""
    return np.array([token for ids in windows for token in ids[1:-1]], np.int64)


def cosines(a: Floats, b: Floats) -> Values:
    """Return the (n, m) cosines of two texts' states, (n, D) and (m, D) (eq. 7)."""
    a, b = (x.astype(np.float64) for x in (a, b))
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b))
    return (a @ b.T).round(_DECIMALS).clip(-1.0, 1.0)


def best(a: Floats, b: Floats) -> tuple[Values, Values]:
    """Return the (n,) and (m,) cosines of each token's match, for states (n, D) and (m, D)."""
    of_a, of_b = np.full(len(a), -1.0), np.full(len(b), -1.0)
    for i in range(0, len(a), _BLOCK):
        for j in range(0, len(b), _BLOCK):
            rows, columns = slice(i, i + _BLOCK), slice(j, j + _BLOCK)
            similar = cosines(a[rows], b[columns])
            of_a[rows] = np.maximum(of_a[rows], similar.max(1))
            of_b[columns] = np.maximum(of_b[columns], similar.max(0))
    return of_a, of_b


def precision(candidate: Side, reference: Side) -> float:
    """Return how well the candidate's tokens are matched, -1..1 (eq. 5)."""
    return candidate.mean


def recall(candidate: Side, reference: Side) -> float:
    """Return how well the reference's tokens are matched, -1..1 (eq. 6)."""
    return reference.mean


def f1(candidate: Side, reference: Side) -> float:
    """Return the harmonic mean of precision and recall (eq. 8); 0 if one of them is not positive."""
    p, r = candidate.mean, reference.mean
    return 2 * p * r / (p + r) if p > 0 and r > 0 else 0.0


MEASURES = {"precision": precision, "recall": recall, "f1": f1}
