"""Token-level precision, recall and F1 with tf-idf weights (SIMLLM paper, section 4.3, eq. 5 to 8).

Every token is matched with the most similar token of the other text. The similarity of two tokens is the
cosine of their hidden states (eq. 7). Each occurrence of a token has the weight idf (inverse document
frequency); the total weight of a token in a text is therefore tf * idf. <s> and </s> are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import AnyFloats, Floats
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.reading import build, read_json
from simllm.model.tokenizer import Tokenizer
from simllm.scoring.embedding import (
    EncodedTexts,
    Engine,
    Ids,
    PairValues,
    Tokenized,
    run_encoder,
    split_pairs,
)

_BLOCK = 1024  # tokens of each text that are compared at once; only very long texts have more
_DECIMALS = 12  # digits of a cosine; further digits are rounding error and would break ties


class MatchedTokens(NamedTuple):
    """The n tokens of one text, each matched with the most similar token of another text.

    Attributes:
        best: (n,) cosine between each token and its match.
        weights: (n,) weight of each token, above 0.
    """

    best: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """Weighted mean of the cosines between tokens and their matches, from -1 to 1."""
        # Both sums add the tokens in the same order. With different orders, rounding errors could push the
        # mean slightly above 1.
        return float((self.best * self.weights).sum() / self.weights.sum())


def token_states(engine: Engine, texts: Tokenized, boundaries: bool = False) -> list[NDArray[np.float32]]:
    """Compute, for each text, (L, D) float32 hidden states of its L tokens, with or without <s> and </s>."""
    edge = 0 if boundaries else 1

    def without_padding(encoded: EncodedTexts) -> list[NDArray[np.float32]]:
        # A view would keep the padded states of the whole batch in memory.
        return [row[edge : len(row) - edge].copy() for row in encoded.states()]

    states = run_encoder(engine, texts, without_padding)
    return [
        states[windows[0]] if len(windows) == 1 else np.concatenate([states[ids] for ids in windows])
        for windows in texts.inputs
    ]


def token_ids(windows: list[Ids]) -> NDArray[np.int64]:
    """Return the (L,) token ids of a text without <s> and </s>."""
    return np.array([token for ids in windows for token in ids[1:-1]], np.int64)


def cosines(a: AnyFloats, b: AnyFloats) -> Floats:
    """Compute (n, m) cosines of tokens (eq. 7) from (n, D) and (m, D) hidden states."""
    a, b = (x.astype(np.float64) for x in (a, b))
    # The function N in eq. 7 is understood as scaling to length 1. Without it, the similarity would have no
    # upper bound.
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b))
    return (a @ b.T).round(_DECIMALS).clip(-1.0, 1.0)


def match(
    a: AnyFloats, b: AnyFloats, weights_a: Floats, weights_b: Floats
) -> tuple[MatchedTokens, MatchedTokens]:
    """Match the tokens of two texts, (n, D) and (m, D) states with (n,) and (m,) weights."""
    best_a, best_b = best_cosines(a, b)
    return MatchedTokens(best_a, weights_a), MatchedTokens(best_b, weights_b)


def best_cosines(a: AnyFloats, b: AnyFloats) -> tuple[Floats, Floats]:
    """Compute the cosines, (n,) and (m,), of the tokens of two texts with their matches in the other text."""
    of_a, of_b = np.full(len(a), -1.0), np.full(len(b), -1.0)
    # In blocks, because two texts of many windows would need a matrix of gigabytes.
    for i in range(0, len(a), _BLOCK):
        for j in range(0, len(b), _BLOCK):
            rows, columns = slice(i, i + _BLOCK), slice(j, j + _BLOCK)
            similar = cosines(a[rows], b[columns])
            of_a[rows] = np.maximum(of_a[rows], similar.max(1))
            of_b[columns] = np.maximum(of_b[columns], similar.max(0))
    return of_a, of_b


def precision(candidate: MatchedTokens, reference: MatchedTokens) -> float:
    """Compute precision (eq. 5): the weighted mean cosine of the candidate's tokens and their matches."""
    return candidate.mean


def recall(candidate: MatchedTokens, reference: MatchedTokens) -> float:
    """Compute recall (eq. 6): the weighted mean cosine of the reference's tokens and their matches."""
    return reference.mean


def f1(candidate: MatchedTokens, reference: MatchedTokens) -> float:
    """Compute F1 (eq. 8), the harmonic mean of precision and recall; it is 0 unless both are positive."""
    p, r = candidate.mean, reference.mean
    return 2 * p * r / (p + r) if p > 0 and r > 0 else 0.0


TOKEN_SIMILARITIES = {"precision": precision, "recall": recall, "f1": f1}


@dataclass(frozen=True)
class Frequencies:
    """Document frequencies: for each token, the number of texts that contain it.

    The similarities `precision`, `recall` and `f1` use the frequencies to give rare tokens more weight.

    Attributes:
        documents: Number of texts in which tokens were counted.
        of: The number of texts that contain each token; tokens in no text are left out.
    """

    documents: int
    of: dict[str, int]

    def __post_init__(self) -> None:
        # `type`, because True is an int, too.
        if not all(type(count) is int and 0 < count <= self.documents for count in self.of.values()):
            raise InputError(f"frequencies must be whole numbers from 1 to {self.documents}, the documents")

    @classmethod
    def count(cls, texts: Iterable[Tokenized], tokenizer: Tokenizer) -> Frequencies:
        """Count, for each token, the texts that contain it; <s> and </s> are not counted.

        Args:
            texts: Lists of tokenized texts; all lists are counted together.
            tokenizer: The tokenizer that made the token ids.
        """
        counts: Counter[int] = Counter()
        documents = 0
        for chunk in texts:
            documents += len(chunk.inputs)
            for windows in chunk.inputs:
                counts.update({token for ids in windows for token in ids[1:-1]})
        return cls(documents, {tokenizer.id_to_token(token): counts[token] for token in sorted(counts)})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Frequencies:
        """Load document frequencies from a JSON file that `save` wrote; raise InputError for another file."""
        return build(cls, read_json(Path(file)), str(file))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Save the document frequencies as JSON; raise InputError if the file cannot be written."""
        output_file.write(Path(file), json.dumps(asdict(self), ensure_ascii=False) + "\n")

    @property
    def hash(self) -> str:
        """First 12 hex digits of the SHA-256 of the document frequencies."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def weights(self, tokenizer: Tokenizer) -> NDArray[np.float64]:
        """Compute the inverse document frequency of each token: ln((N + 1) / (df + 1)) + 1.

        N is the number of all texts; df is the number of texts that contain the token.

        Args:
            tokenizer: A tokenizer with V tokens.

        Returns:
            (V,) weights, in the order of the token ids.

        Raises:
            InputError: A counted token is not in the tokenizer's vocabulary.
        """
        counts = np.zeros(tokenizer.vocab_size)
        for token, count in self.of.items():
            number = tokenizer.backend.token_to_id(token)
            if number is None:
                raise InputError(f"frequencies: token {token!r} is not in the model's vocabulary")
            counts[number] = count
        # As in scikit-learn: the 1 in `df + 1` keeps the weight finite if no text contains the token, and the
        # last 1 keeps it positive if all texts do.
        return np.log((self.documents + 1) / (counts + 1)) + 1


@dataclass(frozen=True)
class TokenScorer:
    """Scorer that matches each token with the most similar token of the other text.

    Attributes:
        weights: (V,) weight of each token in the vocabulary.
        similarity: "precision", "recall" or "f1".
    """

    engine: Engine
    weights: Floats
    similarity: str

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs; this scorer cannot estimate the probability of the same meaning."""
        n = len(texts.inputs) // 2
        values = np.zeros(n)
        for pairs in split_pairs(texts.inputs[:n], texts.inputs[n:]):
            part = texts.of_pairs(pairs)
            states = token_states(self.engine, part)
            weights = [self.weights[token_ids(windows)] for windows in part.inputs]
            for k, i in enumerate(pairs):
                a, b = k, k + len(pairs)
                # A pair with an empty text has no tokens to match, and gets its score later.
                if len(weights[a]) and len(weights[b]):
                    sides = match(states[a], states[b], weights[a], weights[b])
                    values[i] = TOKEN_SIMILARITIES[self.similarity](*sides)
        return PairValues(values)
