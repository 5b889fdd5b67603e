"""SimLLM, the metric: how close in meaning is a candidate summary to its reference?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray

import simllm
from simllm.errors import InputError
from simllm.metrics.protocol import Example, sides
from simllm.model import checkpoint
from simllm.model import pooling as poolings
from simllm.model import similarity as similarities
from simllm.model.checkpoint import default_model
from simllm.model.inference import MODES, engine
from simllm.scoring import encode, token_matching
from simllm.scoring.document_frequencies import Frequencies
from simllm.scoring.encode import Tokenized
from simllm.scoring.pair_scorers import ByToken, Measure, Pooled
from simllm.scoring.scores import Scores, joined, warn
from simllm.scoring.streaming import Pair, chunks, scored
from simllm.scoring.text_arguments import checked
from simllm.text import LONGEST


class SimLLM:
    """A loaded metric, with the protocol of `simllm.metrics`; threads may share it.

    >>> metric = SimLLM()
    >>> metric.score(["adds two lists"], ["combines 2 arrays"]).values.shape
    (1,)
    """

    name = "simllm"

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        pooling: str | None = None,
        similarity: str | None = None,
        mode: str = "exact",
        on_long: str = "truncate",
        frequencies: Frequencies | None = None,
        device: str | None = None,
    ) -> None:
        """Load a model folder, by default the model that comes with the package.

        `pooling` (mean, cls, max) and `similarity` (cosine, inverse-euclidean, or token by
        token precision, recall, f1) default to what the model folder says. `mode` is exact
        (float32), fast (bfloat16), or plain for a model in training. `on_long` says what
        becomes of a text longer than the model reads: truncate, window, error. `frequencies`
        weigh tokens, by default those of the references. `device` is the GPU if there is one.
        Raises InputError for a bad folder or an unknown name.
        """
        self._made_with = (model, pooling, similarity, mode, on_long, frequencies, device)
        self.checkpoint = checkpoint.load(default_model() if model is None else model)
        info = self.checkpoint.info
        self.pooling, self.similarity = pooling or info.pooling, similarity or info.similarity
        self.mode, self.on_long, self.frequencies = mode, on_long, frequencies
        if on_long not in encode.ON_LONG:
            raise InputError(f"on_long {on_long!r}: expected one of {', '.join(encode.ON_LONG)}")
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.engine = engine(self.checkpoint.encoder.to(device), mode)
        self._pool = poolings.named(self.pooling)
        self.by_token = self.similarity in token_matching.MEASURES
        self._similarity = None if self.by_token else similarities.named(self.similarity)
        own = (self.pooling, self.similarity) == (info.pooling, info.similarity)
        self.calibration = info.calibration if own else None

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **options: Any) -> SimLLM:
        """Load a model folder; the same as `SimLLM(folder, **options)`."""
        return cls(folder, **options)

    @overload
    def score(self, candidates: Sequence[Example]) -> Scores: ...

    @overload
    def score(self, candidates: Sequence[str], references: Sequence[str]) -> Scores: ...

    def score(self, candidates: Sequence[Any], references: Sequence[str] | None = None) -> Scores:
        """Score each candidate against the reference at its index.

        Scores are symmetric (precision and recall change places). They do not depend on the order,
        on duplicates or on the other pairs, to 1e-5; only token weights may come from all references.
        A text that is empty after cleaning scores 0, or 1 against the same text.

        Args:
            candidates: n texts; or n examples, which hold their references.
            references: n texts.

        Returns:
            The n scores, with counts of empty and truncated texts and the signature.

        Raises:
            TypeError: The arguments are no lists of texts, or no list of examples.
            InputError: There are more candidates than references, or fewer.
        """
        if references is None:
            candidates, references = sides(candidates)
        candidates, references = checked("candidates", candidates), checked("references", references)
        if len(candidates) != len(references):
            raise InputError(f"{len(candidates)} candidates but {len(references)} references")
        frequencies = self.frequencies
        if self.by_token and frequencies is None:
            frequencies = self.count(references)
        pairs = zip(candidates, references, strict=True)
        blank = replace(self.blank, signature=self._signature(frequencies))
        scores = joined(self._scored(pairs, frequencies, 50_000), blank)
        self.warn(2 * len(candidates), scores.truncated, scores.unreadable)
        return scores

    def stream(self, pairs: Iterable[Pair], first: int = 1) -> Iterator[Scores]:
        """Score (candidate, reference) pairs as they come, a thousand at once, in little memory.

        Token by token it needs `frequencies`, since the references are not there to be counted.
        It does not warn; `warn` does. In errors the pairs are numbered from `first`.
        """
        if self.by_token and self.frequencies is None:
            raise InputError(f"similarity {self.similarity}: a stream needs a table of frequencies")
        return self._scored(pairs, self.frequencies, 1024, first)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the (n, d) float32 embeddings of n texts."""
        texts = checked("texts", texts)
        if not texts:
            return np.empty((0, self.checkpoint.encoder.config.hidden_size), np.float32)
        tokenized = self.tokenize(texts)
        unreadable = sum(bool(texts[i].strip()) for i in np.flatnonzero(tokenized.empty))
        self.warn(len(texts), len(tokenized.long), unreadable)
        return encode.embeddings(self.engine, tokenized, self._pool)

    def compute(self, *, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        """Score under the calling convention of the `evaluate` library."""
        scores = self.score(predictions, references)
        return {"mean_score": scores.mean, "scores": scores.values.tolist(), "signature": scores.signature}

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Clean `texts` and turn them into inputs of the encoder."""
        longest = self.checkpoint.encoder.config.max_length
        return encode.tokenized(self.checkpoint.tokenizer, texts, longest, self.on_long)

    def count(self, references: Iterable[str]) -> Frequencies:
        """Count the references' document frequencies, for similarity token by token."""
        return Frequencies.count(map(self.tokenize, chunks(references, 10_000)), self.checkpoint.tokenizer)

    @property
    def signature(self) -> str:
        """Everything that decides on a score, as `key:value` pairs joined by `|`."""
        return self._signature(self.frequencies)

    def _signature(self, frequencies: Frequencies | None) -> str:
        parts = {
            "model": self.checkpoint.hash,
            "tokenizer": self.checkpoint.tokenizer.hash,
            "pooling": "none" if self.by_token else self.pooling,
            "similarity": self.similarity,
            "dtype": str(MODES[self.mode]).removeprefix("torch."),
            "max_length": self.checkpoint.encoder.config.max_length,
        }
        if self.by_token:
            parts["frequencies"] = frequencies.hash if frequencies else "references"
        if self.on_long == "window":
            parts["long"] = "window"
        parts["version"] = simllm.__version__
        return "|".join(f"{key}:{value}" for key, value in parts.items())

    def warn(self, texts: int, truncated: int, unreadable: int) -> None:
        """Warn of what was not read, or not whole, of so many texts."""
        limit = self.checkpoint.encoder.config.max_length
        windows = f"read in windows of {limit} tokens, up to {LONGEST:,} characters"
        long = windows if self.on_long == "window" else f"cut at {limit} tokens"
        warn(texts, truncated, unreadable, long)

    def _scored(
        self, pairs: Iterable[Pair], frequencies: Frequencies | None, size: int, first: int = 1
    ) -> Iterator[Scores]:
        measure: Measure
        if self._similarity:
            measure = Pooled(self.engine, self._pool, self._similarity)
        else:
            assert frequencies is not None
            weights = frequencies.weights(self.checkpoint.tokenizer)
            measure = ByToken(self.engine, weights, self.similarity)
        return scored(pairs, self.tokenize, measure, size, self.blank, first)

    @property
    def blank(self) -> Scores:
        """The scores of no pairs."""
        return Scores(np.empty(0), 0, 0, 0, 0, self.signature, self.calibration)

    def __repr__(self) -> str:
        return f"SimLLM({self.signature})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, self._made_with


def _loaded(model: Any, *options: Any) -> SimLLM:
    """The same metric again, in another process."""
    names = ("pooling", "similarity", "mode", "on_long", "frequencies", "device")
    return SimLLM(model, **dict(zip(names, options, strict=True)))
