"""Token-level precision, recall and F1 with TF-IDF weights (SIMLLM, section 4.3, eq. 5 to 8).

Every token is matched with the most similar one of the other text. The similarity is the
cosine of the two contextual states: the paper's N is read as the normalisation of an
embedding to unit length, without which eq. (7) has no upper bound. The sums run over the
tokens as they occur, each with its inverse document frequency, so that the term frequency
is in the number of summands. The boundary tokens take no part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring.encode import Tokenized, run

Floats = NDArray[np.floating]


def states(engine: Engine, texts: Tokenized, boundaries: bool = False) -> list[NDArray[np.float32]]:
    """The (L, D) states of each text's tokens, without or with the `boundaries` <s> and </s>."""
    edge = 0 if boundaries else 1

    def kept(hidden: Tensor, mask: Tensor) -> list[NDArray[np.float32]]:
        whole, lengths = hidden.float().cpu().numpy(), mask.sum(1).tolist()
        return [row[edge : length - edge].copy() for row, length in zip(whole, lengths, strict=True)]

    found = run(engine, texts, kept)
    return [np.concatenate([found[ids] for ids in windows]) for windows in texts.inputs]


def tokens(texts: Tokenized) -> list[NDArray[np.int64]]:
    """The (L,) token ids of each text."""
    return [np.array([t for ids in windows for t in ids[1:-1]], np.int64) for windows in texts.inputs]


def cosines(a: Floats, b: Floats) -> NDArray[np.float64]:
    """(n, D), (m, D) -> (n, m) cosines of the states of two texts' tokens (eq. 7)."""
    a, b = (x.astype(np.float64) for x in (a, b))
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b))
    return (a @ b.T).clip(-1.0, 1.0)


def precision(similar: Floats, candidate: Floats, reference: Floats) -> float:
    """(n, m) cosines, (n,) and (m,) weights -> how well the candidate's tokens are matched (eq. 5)."""
    return float(similar.max(1) @ candidate / candidate.sum())


def recall(similar: Floats, candidate: Floats, reference: Floats) -> float:
    """(n, m) cosines, (n,) and (m,) weights -> how well the reference's tokens are matched (eq. 6)."""
    return float(similar.max(0) @ reference / reference.sum())


def f1(similar: Floats, candidate: Floats, reference: Floats) -> float:
    """Harmonic mean of precision and recall (eq. 8); 0 where one of them is not positive."""
    p, r = precision(similar, candidate, reference), recall(similar, candidate, reference)
    return 2 * p * r / (p + r) if p > 0 and r > 0 else 0.0


MEASURES = {"precision": precision, "recall": recall, "f1": f1}
