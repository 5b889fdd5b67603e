"""The file of a part of a corpus: comments with their cleaned texts, and tables of their hashes."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.io import files
from train.corpus.comment import Comment
from train.corpus.deduplicate import SIGNATURE, signature
from train.corpus.text_identity import identity

# A text, and the comment and repository it is from; 0 for no repository.
TEXT = np.dtype([("identity", "u8"), ("comment", "u8"), ("repository", "u8")])
# What a comment can be paired by, 0 for nothing; and, by their rows, what comments may override.
KEYS = np.dtype([("summary", "u8"), ("function", "u8"), ("name", "u8")])
OVERRIDES = np.dtype([("row", "u8"), ("name", "u8")])
_CHECKSUM = 16  # bytes


@dataclass(frozen=True)
class Row:
    """A comment with its cleaned texts: its summary, empty if that was left out, and paragraphs."""

    comment: dict[str, str]
    summary: str
    rest: list[str]

    @property
    def texts(self) -> list[str]:
        """The texts that are left, the summary first."""
        return [self.summary, *self.rest] if self.summary else self.rest


class Part:
    """A file of rows, with the tables about them. A checksum follows the tables."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __getitem__(self, table: str) -> NDArray[Any]:
        """`texts` (T,) of TEXT, `signatures` (T, SIGNATURE), `keys` (R,) of KEYS, or `overrides`."""
        data = self._read()
        if data is None:
            raise InputError(f"{self.file}: is damaged; run the same command again to make it anew")
        with np.load(io.BytesIO(data)) as arrays:
            return arrays[table]

    def is_whole(self) -> bool:
        """Return whether the file is there and has the right checksum; raise InputError as `_read`."""
        return self._read() is not None

    def facts(self) -> dict[str, Any]:
        """The `source` of the part, and the counts of what was `found` on the way from the source."""
        return json.loads(self["facts"].tobytes())

    def rows(self) -> Iterator[Row]:
        """The comments of which a text is left."""
        for line in self["rows"].tobytes().splitlines():
            yield Row(*json.loads(line))

    def _read(self) -> bytes | None:
        """The tables; None if the file is missing or damaged. Raises InputError if it cannot be read."""
        try:
            whole = self.file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read ({error.strerror})") from None
        data, checksum = whole[:-_CHECKSUM], whole[-_CHECKSUM:]
        return data if _checksum(data) == checksum else None


class Writer:
    """Collects the rows of a part."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.texts: list[tuple[int, int, int]] = []
        self.signatures: list[NDArray[np.uint8]] = []
        self.keys: list[tuple[int, int, int]] = []
        self.overrides: list[tuple[int, int]] = []

    def add(self, comment: Comment, row: Row, single: bool) -> None:
        """Add a comment; `single` if no other function in its file has the same name."""
        repository = comment.repository
        identities = [_number(identity(text)) for text in row.texts]
        self.texts += [(each, identities[0], _hash(repository)) for each in identities]
        self.signatures += [signature(text) for text in row.texts]
        *_, owner, method = ("", "", *comment.function.split("."))
        self.overrides += [
            (len(self.keys), _hash(repository, above, method)) for above in comment.overrides.split()
        ]
        function = _hash(repository, comment.path, comment.function) if single else 0
        name = _hash(repository, owner, method) if owner else 0
        self.keys.append((identities[0] if row.summary else 0, function, name))
        self.lines.append(json.dumps([row.comment, row.summary, row.rest]))

    def write(self, file: Path, facts: dict[str, Any]) -> None:
        """Write the part, whole or not at all; raise InputError if it cannot be written."""
        tables = io.BytesIO()
        np.savez(
            tables,
            texts=np.array(self.texts, TEXT),
            signatures=np.array(self.signatures, np.uint8).reshape(-1, SIGNATURE),
            keys=np.array(self.keys, KEYS),
            overrides=np.array(self.overrides, OVERRIDES),
            rows=np.frombuffer("\n".join(self.lines).encode(), np.uint8),
            facts=np.frombuffer(json.dumps(facts).encode(), np.uint8),
        )
        data = tables.getvalue()
        try:
            with files.temporary(file) as partial:
                partial.write_bytes(data + _checksum(data))
                files.sync(partial)
                partial.replace(file)
        except OSError as error:
            raise InputError(f"{file}: cannot be written ({error.strerror})") from None


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM).digest()


def _hash(*names: str) -> int:
    """Return 64 bits of some names, 0 if the first is empty."""
    data = "\0".join(names).encode("utf-8", "replace")
    return _number(hashlib.blake2b(data, digest_size=8).digest()) if names[0] else 0


def _number(eight: bytes) -> int:
    return int.from_bytes(eight, "big")
