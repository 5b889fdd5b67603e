"""The lexical teacher: cosines of weighted bags of tokens, for distillation into the encoder.

A small encoder confuses words with similar contexts; a bag of tokens does not. Training on both
correlates better with human ratings than either alone. The encoder learns the teacher's soft
neighbours in a batch, as in similarity-preserving distillation (Tung and Mori, 2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

_SPECIAL = 5  # number of special tokens, which have the first ids


class LexicalTeacher:
    """Cosines of binary bags of tokens; tokens are weighted by the square root of their idf."""

    def __init__(
        self, texts: Sequence[Sequence[int]], vocab_size: int, special_tokens: int = _SPECIAL
    ) -> None:
        """Count the document frequency of each token in tokenized texts.

        Args:
            texts: The token ids of each text.
            vocab_size: Number of tokens in the vocabulary.
            special_tokens: Number of tokens that have the first ids and weight 0.
        """
        counts = np.bincount(np.concatenate([np.unique(ids) for ids in texts]), minlength=vocab_size)
        self.weights = np.sqrt(np.log((1 + len(texts)) / (1 + counts)) + 1e-3)
        self.weights[:special_tokens] = 0

    def cosines(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return the (N, N) float32 cosines of N tokenized texts, 0..1."""
        bags = self.unit_vectors(texts)
        return (bags @ bags.T).toarray().astype(np.float32)

    def unit_vectors(self, texts: Sequence[Sequence[int]]) -> sparse.csr_matrix:
        """Return the (N, vocab_size) weighted bags of N tokenized texts, with length 1 or 0."""
        tokens = [np.unique(ids) for ids in texts]
        rows = np.repeat(np.arange(len(texts)), [len(ids) for ids in tokens])
        columns = np.concatenate(tokens)
        bags = sparse.csr_matrix(
            (self.weights[columns], (rows, columns)), shape=(len(texts), len(self.weights))
        )
        lengths = np.sqrt(np.asarray(bags.multiply(bags).sum(axis=1)).ravel()).clip(min=1e-9)
        return sparse.csr_matrix(sparse.diags(1 / lengths) @ bags)


def neighbour_distillation_loss(embeddings: Tensor, cosines: Tensor, temperature: float) -> Tensor:
    """Return the KL divergence between the neighbours of the teacher and those of the embeddings.

    The neighbours of a text are the softmax of its cosines with the other texts.

    Args:
        embeddings: (N, D) embeddings.
        cosines: (N, N) cosines of the teacher.
        temperature: The temperature of both softmaxes.
    """
    unit = F.normalize(embeddings, dim=1)
    own = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    student = (unit @ unit.T / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    teacher = (cosines / temperature).masked_fill(own, -1e4).log_softmax(dim=1)
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)
