"""Token-level precision, recall and F1 with TF-IDF weights (SIMLLM, section 4.3, eq. 5 to 8).

Every token is matched with the most similar token of the other text. The similarity is the
cosine of the two contextual states: we read the paper's N as normalisation to unit length,
because eq. (7) has no upper bound without it. The sums run over all occurrences of tokens, each
weighted by its inverse document frequency; repeated tokens add up to the term frequency. The
boundary tokens <s> and </s> are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring.encode import Ids, Tokenized, run_encoder

Floats = NDArray[np.floating]
Values = NDArray[np.float64]

_BLOCK = 1024  # tokens of each text that are compared at once; only very long texts have more
_DECIMALS = 12  # digits of a cosine; further digits are rounding error and would break ties


class MatchedTokens(NamedTuple):
    """The n tokens of one text, matched with the tokens of the other text."""

    best: Values  # (n,) cosine of each token and its most similar token of the other text
    weights: Values  # (n,) weight of each token, above 0

    @property
    def mean(self) -> float:
        """Weighted mean of the cosines, -1..1.

        Both sums add their terms in the same order, so rounding cannot push the mean above 1.
        """
        return float((self.best * self.weights).sum() / self.weights.sum())


def token_states(engine: Engine, texts: Tokenized, boundaries: bool = False) -> list[NDArray[np.float32]]:
    """Return the contextual states of the tokens of n texts.

    Args:
        engine: The encoder.
        texts: n tokenized texts.
        boundaries: Whether to include <s> and </s>.

    Returns:
        n arrays (L, D) float32; L is the number of tokens of the text.
    """
    edge = 0 if boundaries else 1

    def without_padding(hidden: Tensor, mask: Tensor) -> list[NDArray[np.float32]]:
        whole, lengths = hidden.float().cpu().numpy(), mask.sum(1).tolist()
        return [row[edge : length - edge].copy() for row, length in zip(whole, lengths, strict=True)]

    states = run_encoder(engine, texts, without_padding)
    return [
        states[windows[0]] if len(windows) == 1 else np.concatenate([states[ids] for ids in windows])
        for windows in texts.inputs
    ]


def token_ids(windows: list[Ids]) -> NDArray[np.int64]:
    """Return the (L,) token ids of a text's windows, without <s> and </s>."""
    return np.array([token for ids in windows for token in ids[1:-1]], np.int64)


def cosines(a: Floats, b: Floats) -> Values:
    """Return the (n, m) cosines between the states of two texts, (n, D) and (m, D) (eq. 7)."""
    a, b = (x.astype(np.float64) for x in (a, b))
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b))
    return (a @ b.T).round(_DECIMALS).clip(-1.0, 1.0)


def match(a: Floats, b: Floats, weights_a: Values, weights_b: Values) -> tuple[MatchedTokens, MatchedTokens]:
    """Match the tokens of two texts with each other.

    Args:
        a: (n, D) states of one text.
        b: (m, D) states of the other text.
        weights_a: (n,) weights of the tokens of `a`.
        weights_b: (m,) weights of the tokens of `b`.

    Returns:
        The matched tokens of `a`, and those of `b`.
    """
    best_a, best_b = best_cosines(a, b)
    return MatchedTokens(best_a, weights_a), MatchedTokens(best_b, weights_b)


def best_cosines(a: Floats, b: Floats) -> tuple[Values, Values]:
    """Return the cosine of each token and its most similar token of the other text.

    Args:
        a: (n, D) states of one text.
        b: (m, D) states of the other text.

    Returns:
        (n,) cosines for the tokens of `a`, and (m,) cosines for those of `b`.
    """
    of_a, of_b = np.full(len(a), -1.0), np.full(len(b), -1.0)
    for i in range(0, len(a), _BLOCK):
        for j in range(0, len(b), _BLOCK):
            rows, columns = slice(i, i + _BLOCK), slice(j, j + _BLOCK)
            similar = cosines(a[rows], b[columns])
            of_a[rows] = np.maximum(of_a[rows], similar.max(1))
            of_b[columns] = np.maximum(of_b[columns], similar.max(0))
    return of_a, of_b


def precision(candidate: MatchedTokens, reference: MatchedTokens) -> float:
    """Return the weighted mean cosine of the candidate's tokens, -1..1 (eq. 5)."""
    return candidate.mean


def recall(candidate: MatchedTokens, reference: MatchedTokens) -> float:
    """Return the weighted mean cosine of the reference's tokens, -1..1 (eq. 6)."""
    return reference.mean


def f1(candidate: MatchedTokens, reference: MatchedTokens) -> float:
    """Return the harmonic mean of precision and recall (eq. 8), or 0 if one of them is not positive."""
    p, r = candidate.mean, reference.mean
    return 2 * p * r / (p + r) if p > 0 and r > 0 else 0.0


TOKEN_SIMILARITIES = {"precision": precision, "recall": recall, "f1": f1}
