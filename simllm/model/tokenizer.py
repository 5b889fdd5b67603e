"""The tokenizer, which cleans texts and splits them into tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Backend

from simllm.errors import InputError
from simllm.text_cleaning import LONGEST, encodable

# The special tokens have the ids 0 to 4 in every vocabulary.
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PAD_ID, UNK_ID, MASK_ID = 1, 3, 4

# Characters in one call of the backend, which cannot be interrupted and needs 30 bytes per character.
_CHUNK = 1_000_000


class Tokenizer:
    """Tokenizer that cleans texts and turns them into token ids.

    For example, cleaning removes comment marks and converts letters to lower case. The ids of a text begin
    with the id of the token `<s>` and end with that of `</s>`. A special token that is written out in a text,
    such as "<mask>", is treated as ordinary text.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.backend.encode_special_tokens = True
        self.backend.no_padding()
        self.backend.no_truncation()
        first_tokens = tuple(backend.id_to_token(i) for i in range(len(SPECIAL_TOKENS)))
        if first_tokens != SPECIAL_TOKENS:
            raise InputError(f"tokenizer: the first tokens are {first_tokens}, expected {SPECIAL_TOKENS}")

    @classmethod
    def load(cls, file: Path) -> Tokenizer:
        """Load a tokenizer from a `tokenizer.json`; raise InputError if the file is missing or damaged."""
        if not file.is_file():
            raise InputError(f"{file}: no such file; expected the tokenizer of a model folder")
        try:
            backend = Backend.from_buffer(file.read_bytes())  # `from_file` refuses paths that are not UTF-8
        except Exception as error:  # the backend raises bare Exceptions
            raise InputError(f"{file}: not a tokenizer ({error})") from None
        return cls(backend)

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary, special tokens included."""
        return self.backend.get_vocab_size()

    @cached_property
    def hash(self) -> str:
        """Hash of everything that can change token ids: the first 12 hex digits of a SHA-256."""
        return hashlib.sha256(self.backend.to_str().encode()).hexdigest()[:12]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Clean and tokenize n texts.

        Only the first 10,000 characters of a text are read (`simllm.text_cleaning.LONGEST`).

        Args:
            texts: n texts.

        Returns:
            The token ids of each text, from `<s>` to `</s>`. An empty text has only these two ids.
        """
        ids: list[list[int]] = []
        chunk: list[str] = []
        space = _CHUNK
        for text in (text[:LONGEST] for text in texts):
            if chunk and len(text) > space:
                ids += self._encode_chunk(chunk)
                chunk, space = [], _CHUNK
            chunk.append(encodable(text))
            space -= len(text)
        return ids + self._encode_chunk(chunk)

    def _encode_chunk(self, texts: list[str]) -> list[list[int]]:
        """Clean and tokenize one chunk of texts in parallel; return the token ids of each text.

        The method `encode` splits its texts into chunks, because the user cannot interrupt the tokenization
        of a chunk, and because long chunks need much memory.
        """
        return [encoding.ids for encoding in self.backend.encode_batch_fast(texts)]

    def id_to_token(self, number: int) -> str:
        """Return the token whose id is `number`."""
        return str(self.backend.id_to_token(number))

    @staticmethod
    def truncate(ids: list[int], longest: int) -> list[int]:
        """Shorten the token ids of a text to at most `longest` ids.

        The last id is kept: it is the id of `</s>`, which marks the end of a text.
        """
        return ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]]
