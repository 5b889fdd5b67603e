"""How much two texts share: the teacher that keeps an encoder precise about words.

An encoder of a few million weights blurs words that stand in like contexts. The cosine of
idf-weighted sets of tokens does not; following it, too, is worth more on rated pairs than
either alone. The targets are soft neighbours in a batch, as in similarity-preserving
distillation (Tung and Mori, 2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

_SPECIAL = 5  # the first token ids belong to no word


class Overlap:
    """Cosines of binary bags of tokens, weighted by the square root of their idf."""

    def __init__(self, texts: Sequence[Sequence[int]], vocab_size: int) -> None:
        """Count in how many of the tokenized texts each token stands."""
        counts = np.bincount(np.concatenate([np.unique(ids) for ids in texts]), minlength=vocab_size)
        self.weights = np.sqrt(np.log((1 + len(texts)) / (1 + counts)) + 1e-3)
        self.weights[:_SPECIAL] = 0

    def cosines(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """(N, N) float32, 0 to 1, of N tokenized texts."""
        tokens = [np.unique(ids) for ids in texts]
        rows = np.repeat(np.arange(len(texts)), [len(ids) for ids in tokens])
        columns = np.concatenate(tokens)
        bags = sparse.csr_matrix(
            (self.weights[columns], (rows, columns)), shape=(len(texts), len(self.weights))
        )
        lengths = np.sqrt(np.asarray(bags.multiply(bags).sum(axis=1)).ravel()).clip(min=1e-9)
        bags = sparse.diags(1 / lengths) @ bags
        return (bags @ bags.T).toarray().astype(np.float32)


def follow(embeddings: Tensor, cosines: Tensor, temperature: float) -> Tensor:
    """Cross entropy between the neighbours of N texts by (N, N) cosines and by (N, D) embeddings,
    each a softmax over the other texts; less the entropy of the first, so that 0 is perfect.
    """
    unit = F.normalize(embeddings, dim=1)
    own = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    found = (unit @ unit.T / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    wanted = (cosines / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    return F.kl_div(found, wanted, reduction="batchmean", log_target=True)
