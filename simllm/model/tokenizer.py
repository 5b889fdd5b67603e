"""The tokenizer: a `tokenizer.json` whose normalizer does the whole cleaning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Backend

from simllm.errors import InputError
from simllm.text import LONGEST, encodable

# Ids 0 to 4, in this order, in every vocabulary.
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PAD_ID, UNK_ID, MASK_ID = 1, 3, 4

# Characters in one call of the backend: it cannot be interrupted, and needs about 30 bytes a character.
_CHUNK = 1_000_000


class Tokenizer:
    """Texts to token ids, `<s>` and `</s>` included.

    A special token spelled out in a text ("<mask>") is text like any other.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.backend.encode_special_tokens = True
        self.backend.no_padding()
        self.backend.no_truncation()
        found = tuple(backend.id_to_token(i) for i in range(len(SPECIAL_TOKENS)))
        if found != SPECIAL_TOKENS:
            raise InputError(f"tokenizer: the first tokens are {found}, expected {SPECIAL_TOKENS}")

    @classmethod
    def load(cls, file: Path) -> Tokenizer:
        """Read a `tokenizer.json`; raise InputError where it is missing or damaged."""
        if not file.is_file():
            raise InputError(f"{file}: no such file; expected the tokenizer of a model folder")
        try:
            backend = Backend.from_buffer(file.read_bytes())  # its own reader takes no path but UTF-8
        except Exception as error:  # bare Exception is what the backend raises
            raise InputError(f"{file}: not a tokenizer ({error})") from None
        return cls(backend)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, the special ones included."""
        return self.backend.get_vocab_size()

    @cached_property
    def hash(self) -> str:
        """First 12 hex digits of the SHA-256 of everything that decides on the ids."""
        return hashlib.sha256(self.backend.to_str().encode()).hexdigest()[:12]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Clean and tokenize; every text gives at least `<s> </s>`.

        Of each text the first `simllm.text.LONGEST` characters are read.
        """
        ids: list[list[int]] = []
        chunk: list[str] = []
        room = _CHUNK
        for text in (text[:LONGEST] for text in texts):
            if chunk and len(text) > room:
                ids += self._encoded(chunk)
                chunk, room = [], _CHUNK
            chunk.append(encodable(text))
            room -= len(text)
        return ids + self._encoded(chunk)

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.backend.encode_batch_fast(texts)]

    def token(self, number: int) -> str:
        """The token with this id."""
        return str(self.backend.id_to_token(number))

    @staticmethod
    def cut(ids: list[int], longest: int) -> list[int]:
        """Shorten `ids` to `longest` tokens, the last of which is still `</s>`."""
        return ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]]
