"""Document frequencies: how many texts contain a token, and the weight of the token."""

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
from simllm.io.strict_loading import build, read_json
from simllm.model.tokenizer import Tokenizer
from simllm.scoring.encode import Tokenized


@dataclass(frozen=True)
class Frequencies:
    """Document frequencies, which weigh the tokens of token-level similarities.

    Attributes:
        documents: Number of texts that were counted.
        of: Number of texts that contain each token; tokens in no text are left out.
    """

    documents: int
    of: dict[str, int]

    def __post_init__(self) -> None:
        if not all(type(count) is int and 0 < count <= self.documents for count in self.of.values()):
            raise InputError(f"frequencies must be whole numbers from 1 to {self.documents}, the documents")

    @classmethod
    def count(cls, texts: Iterable[Tokenized], tokenizer: Tokenizer) -> Frequencies:
        """Count document frequencies in tokenized texts.

        Args:
            texts: Chunks of tokenized texts.
            tokenizer: The tokenizer of the texts.
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
        """Load a table that `save` wrote; raise InputError if it is not one."""
        return build(cls, read_json(Path(file)), str(file))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Save the table as JSON; raise InputError if the file cannot be written."""
        files.write(Path(file), json.dumps(asdict(self), ensure_ascii=False) + "\n")

    @property
    def hash(self) -> str:
        """First 12 hex digits of the SHA-256 of the table."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def weights(self, tokenizer: Tokenizer) -> NDArray[np.float64]:
        """Return the (V,) inverse document frequencies of the vocabulary: ln((N + 1) / (df + 1)) + 1.

        The smoothing is that of scikit-learn: tokens in no text have a finite weight, and tokens
        in every text have a positive one.

        Raises:
            InputError: A token of the table is not in the vocabulary.
        """
        counts = np.zeros(tokenizer.vocab_size)
        for token, count in self.of.items():
            number = tokenizer.backend.token_to_id(token)
            if number is None:
                raise InputError(f"frequencies: token {token!r} is not in the model's vocabulary")
            counts[number] = count
        return np.log((self.documents + 1) / (counts + 1)) + 1
