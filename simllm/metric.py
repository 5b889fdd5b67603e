"""SimLLM, the metric: how close in meaning is a candidate summary to its reference?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simllm
from simllm import checkpoint
from simllm import pooling as poolings
from simllm import similarity as similarities
from simllm.encode import Encoded, encode
from simllm.errors import InputError


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs, in input order."""

    values: NDArray[np.float64]  # (n,) 1 means the same; cosine -1..1, inverse-euclidean 0..1
    empty: int  # pairs with a text of which cleaning leaves nothing
    truncated: int  # texts, of both sides, cut at the model's longest input
    deduplicated: int  # texts, of both sides, that were not encoded again
    signature: str  # pins everything that decides on the values

    @property
    def mean(self) -> float:
        """Mean of the values; NaN for no pairs."""
        return float(self.values.mean()) if len(self.values) else float("nan")


class SimLLM:
    """A loaded metric.

    >>> metric = SimLLM()
    >>> metric.score(["adds two lists"], ["combines 2 arrays"]).values.shape
    (1,)
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        pooling: str | None = None,
        similarity: str | None = None,
    ) -> None:
        """Load a model folder, by default the model that comes with the package.

        `pooling` (mean, cls, max) and `similarity` (cosine, inverse-euclidean) default to
        what the model folder says. Raises InputError for a bad folder or an unknown name.
        """
        self.checkpoint = checkpoint.load(default_model() if model is None else model)
        self.pooling = pooling or self.checkpoint.info.pooling
        self.similarity = similarity or self.checkpoint.info.similarity
        poolings.named(self.pooling)
        self._similarity = similarities.named(self.similarity)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **options: str) -> SimLLM:
        """Load a model folder; the same as `SimLLM(folder, **options)`."""
        return cls(folder, **options)

    def score(self, candidates: Sequence[str], references: Sequence[str]) -> Scores:
        """Score each candidate against the reference at its index.

        Symmetric, and independent of order, duplicates and other texts (to 1e-5). A text of
        which cleaning leaves nothing scores 0, but 1 against the same text. Raises TypeError
        for anything but lists of texts, InputError where their lengths differ.
        """
        candidates, references = _texts("candidates", candidates), _texts("references", references)
        if len(candidates) != len(references):
            raise InputError(f"{len(candidates)} candidates but {len(references)} references")
        encoded = self._encode([*candidates, *references])
        n = len(candidates)
        values = self._similarity(encoded.embeddings[:n], encoded.embeddings[n:])
        empty = encoded.empty[:n] | encoded.empty[n:]
        for i in np.flatnonzero(empty):
            values[i] = float(candidates[i].split() == references[i].split())
        return Scores(values, int(empty.sum()), encoded.truncated, encoded.deduplicated, self.signature)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the (n, d) float32 embeddings of n texts."""
        return self._encode(_texts("texts", texts)).embeddings

    def compute(self, *, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        """Score under the calling convention of the `evaluate` library."""
        scores = self.score(predictions, references)
        return {"mean_score": scores.mean, "scores": scores.values.tolist(), "signature": scores.signature}

    @property
    def signature(self) -> str:
        """Everything that decides on a score, as `key:value` pairs joined by `|`."""
        parts = {
            "model": self.checkpoint.hash,
            "tokenizer": self.checkpoint.tokenizer.hash,
            "pooling": self.pooling,
            "similarity": self.similarity,
            "dtype": "float32",
            "max_length": self.checkpoint.encoder.config.max_length,
            "version": simllm.__version__,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())

    def _encode(self, texts: list[str]) -> Encoded:
        encoded = encode(self.checkpoint, texts, self.pooling)
        if encoded.truncated:
            limit = self.checkpoint.encoder.config.max_length
            warnings.warn(f"{encoded.truncated} of {len(texts)} texts cut at {limit} tokens", stacklevel=3)
        unreadable = sum(bool(texts[i].strip()) for i in np.flatnonzero(encoded.empty))
        if unreadable:
            message = "of which cleaning leaves nothing (the model reads ASCII); scored 0 or, if the same, 1"
            warnings.warn(f"{unreadable} of {len(texts)} texts {message}", stacklevel=3)
        return encoded


def default_model() -> Path:
    """The model folder that comes with the package, or with the checkout it runs from."""
    installed = Path(str(resources.files("simllm"))) / "default_model"
    checkout = Path(__file__).parent.parent / "checkpoints" / "default"
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise InputError(f"no default model in {installed} or {checkout}; name a model folder")


def _texts(name: str, texts: Sequence[str]) -> list[str]:
    """Return `texts` as a list; raise TypeError for a lone string and for what is no text."""
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected a list of texts, got a lone string; write [text]")
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"{name}: expected a list of texts, got {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{index}]: expected a text, got {type(text).__name__}")
    return texts
