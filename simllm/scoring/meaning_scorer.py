"""Scorer that computes the similarity of two texts, and the probability that both have the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from simllm.array_types import Floats, Floats32
from simllm.model.encoder import of_last_layer
from simllm.model.exact_and_fast_mode import Engine
from simllm.model.meaning_head import MeaningHead
from simllm.model.saved_model import MeaningInfo
from simllm.model.token_batches import batch_slices
from simllm.scoring.embed_texts import mean_of_windows, run_encoder
from simllm.scoring.pair_batches import split_pairs
from simllm.scoring.pair_scorer_interface import PairValues
from simllm.scoring.token_windows import Tokenized


@dataclass(frozen=True)
class MeaningScorer:
    """Scorer that gives each text pair a similarity, and the probability that both texts mean the same.

    The similarity compares text embeddings. The probability comes from the meaning head, a network that
    compares the tokens of two texts. Both are computed from one run of the encoder.

    Attributes:
        engine: The encoder.
        pool: The pooling function. It takes (B, L, D) hidden states and a (B, L) mask, true for tokens that
            are not padding. It returns (B, D) embeddings: B texts of L tokens, hidden size D.
        similarity: A function that compares two (n, D) arrays of embeddings, and returns (n,) similarities.
        head: The meaning head.
        info: Description of the meaning head. It has the slope and the intercept that turn the head's logits
            into calibrated probabilities.
    """

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Floats]
    head: MeaningHead
    info: MeaningInfo

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs of texts.

        Args:
            texts: 2n tokenized texts: first the n candidates, then their n references.

        Returns:
            (n,) similarities, and (n,) probabilities that the two texts have the same meaning.
        """
        n = len(texts.inputs) // 2
        scores, same = np.zeros(n), np.ones(n)
        for pairs in split_pairs(texts.inputs[:n], texts.inputs[n:]):
            sides = [[texts.inputs[i] for i in pairs], [texts.inputs[n + i] for i in pairs]]
            texts_of_pairs = Tokenized(sides[0] + sides[1])
            read = run_encoder(self.engine, texts_of_pairs, self._reduce, self.head.config.encoder_layers)
            rows = {ids: row for ids, (row, _) in read.items()}
            states = {ids: projected for ids, (_, projected) in read.items()}
            embeddings = [np.stack([mean_of_windows(rows, text) for text in side]) for side in sides]
            scores[pairs] = self.similarity(embeddings[0], embeddings[1])
            different = [k for k, (a, b) in enumerate(zip(*sides, strict=True)) if a != b]
            joined = [[torch.cat([states[ids] for ids in side[k]]) for k in different] for side in sides]
            logits = self._logits(joined[0], joined[1])
            same[[pairs[k] for k in different]] = _sigmoid(self.info.slope * logits + self.info.intercept)
        return PairValues(scores, same)

    def _reduce(self, hidden: Tensor, mask: Tensor) -> list[tuple[Floats32, Tensor]]:
        """Compute the embedding of each text in a batch, and the inputs of the meaning head.

        The meaning head is a network that compares two texts. Its input is one vector of length W for each
        token. A linear layer computes this vector from the token's hidden states in the encoder's last N
        layers.

        Args:
            hidden: (B, L, N * D) hidden states: B texts of L tokens, N layers, hidden size D. The last D
                values of each token are its states in the last layer.
            mask: (B, L) bool, true for tokens that are not padding.

        Returns:
            For each text: its (D,) embedding; and the (number of tokens, W) vectors of its tokens, without
            padding.
        """
        last = of_last_layer(hidden, self.engine.encoder.config.hidden_size)
        embeddings = self.pool(last, mask).float().cpu().numpy()
        projected, lengths = self.head.project(hidden), mask.sum(1).tolist()
        return [
            (row, states[:length]) for row, states, length in zip(embeddings, projected, lengths, strict=True)
        ]

    def _logits(self, first: Sequence[Tensor], second: Sequence[Tensor]) -> Floats:
        """Run the meaning head, which estimates whether two texts have the same meaning, on n text pairs.

        The pairs are processed in batches of similar length.

        Args:
            first: For each pair, the (L, W) states of the first text: one vector of length W for each of its
                L tokens. A linear layer of the meaning head has computed them from the encoder's hidden
                states.
            second: For each pair, the states of the second text, in the same form.

        Returns:
            (n,) logits; a higher logit means that the same meaning is more probable.
        """
        sizes = [max(len(a), len(b)) for a, b in zip(first, second, strict=True)]
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        logits = np.zeros(len(sizes))
        with torch.inference_mode():
            for rows in batch_slices([range(sizes[i]) for i in order], self.engine.batch_tokens):
                chosen = order[rows]
                a, a_mask = _padded([first[i] for i in chosen])
                b, b_mask = _padded([second[i] for i in chosen])
                logits[chosen] = self.head(a, a_mask, b, b_mask, self.engine.attention).double().cpu().numpy()
        return logits


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -x))


def _padded(states: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad the token states of B texts with zeros to the length L of the longest text.

    Args:
        states: For each text, its (number of tokens, W) states: one vector of length W for each token. The
            meaning head, a network that compares two texts, has computed them.

    Returns:
        (B, L, W) padded states; and a (B, L) bool mask, true for tokens that are not padding.
    """
    padded = pad_sequence(states, batch_first=True)
    lengths = torch.tensor([len(text) for text in states], device=padded.device)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
