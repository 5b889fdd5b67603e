"""How many documents a token occurs in, and what weight that gives it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.io import files
from simllm.io.strict import build, read_json
from simllm.model.tokenizer import Tokenizer
from simllm.scoring.encode import Tokenized


@dataclass(frozen=True)
class Frequencies:
    """Document frequencies: of `documents` texts, `of[token]` hold the token."""

    documents: int
    of: dict[str, int]

    def __post_init__(self) -> None:
        if not all(type(count) is int and 0 < count <= self.documents for count in self.of.values()):
            raise InputError(f"frequencies must be whole numbers from 1 to {self.documents}, the documents")

    @classmethod
    def count(cls, texts: Iterable[Tokenized], tokenizer: Tokenizer) -> Frequencies:
        """Count in tokenized texts."""
        found: Counter[int] = Counter()
        documents = 0
        for part in texts:
            documents += len(part.inputs)
            for windows in part.inputs:
                found.update({token for ids in windows for token in ids[1:-1]})
        return cls(documents, {tokenizer.token(number): found[number] for number in sorted(found)})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Frequencies:
        """Read a saved table; raise InputError for anything unexpected."""
        return build(cls, read_json(Path(file)), str(file))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the table as JSON."""
        files.write(Path(file), json.dumps(asdict(self), ensure_ascii=False) + "\n")

    @property
    def hash(self) -> str:
        """First 12 hex digits of the SHA-256 of the table."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def weights(self, tokenizer: Tokenizer) -> NDArray[np.float64]:
        """(V,) inverse document frequency of every token: ln((N + 1) / (df + 1)) + 1.

        Smoothed, as in scikit-learn, so that a token that is new has a finite weight and one
        that is in every document still has some.
        """
        counts = np.zeros(tokenizer.vocab_size)
        for token, count in self.of.items():
            number = tokenizer.backend.token_to_id(token)
            if number is None:
                raise InputError(f"frequencies: token {token!r} is not in the model's vocabulary")
            counts[number] = count
        return np.log((self.documents + 1) / (counts + 1)) + 1
