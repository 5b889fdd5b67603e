"""Weights of tokens by inverse document frequency (idf): a token that few texts contain has more weight."""

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
from simllm.io import output_file
from simllm.io.reading import build, read_json
from simllm.model.tokenizer import Tokenizer
from simllm.scoring.embedding import Tokenized


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
