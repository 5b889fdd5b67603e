"""Reading and writing of a part.

The file has the comments with their texts, hashes and signatures of the texts, to find equal and similar
ones, and hashes of function names, to find pairs of comments that mean the same.
"""

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
from simllm.io import output_file
from train.corpus.deduplicate import SIGNATURE, signature
from train.corpus.function_comment import Comment
from train.corpus.text_hash import identity

# Hashes of a text, of its comment and of its repository (0: unknown).
TEXT = np.dtype([("identity", "u8"), ("comment", "u8"), ("repository", "u8")])
# Hashes by which comments are paired; 0: none. OVERRIDES: the number of a comment, and the hash of a method
# that the comment's method may override.
KEYS = np.dtype([("summary", "u8"), ("function", "u8"), ("name", "u8")])
OVERRIDES = np.dtype([("row", "u8"), ("name", "u8")])
# In bytes.
_CHECKSUM = 16


@dataclass(frozen=True)
class CommentTexts:
    """A comment with its cleaned texts.

    Attributes:
        comment: The attributes of the `Comment` before cleaning.
        summary: "" if the summary was rejected.
        rest: The other paragraphs.
    """

    comment: dict[str, str]
    summary: str
    rest: list[str]

    @property
    def texts(self) -> list[str]:
        """The texts of the comment, the summary first."""
        return [self.summary, *self.rest] if self.summary else self.rest


class Part:
    """Reader of a part; the file has a checksum at its end."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __getitem__(self, table: str) -> NDArray[Any]:
        """Return one of the arrays in the file, for R comments with T texts.

        - `texts`: (T,) of type `TEXT`.
        - `signatures`: (T, SIGNATURE) bytes.
        - `keys`: (R,) of type `KEYS`.
        - `overrides`: of type `OVERRIDES`, with one entry for each comment and direct supertype of its class.
        - `rows`, `facts`: bytes of JSON, which the methods of the same names parse.
        """
        data = self._read()
        if data is None:
            raise InputError(f"{self.file}: is damaged; rerun the same command to make it again")
        with np.load(io.BytesIO(data)) as arrays:
            return arrays[table]

    def is_whole(self) -> bool:
        """Return whether the file exists and its checksum is right; raise InputError if it is unreadable."""
        return self._read() is not None

    def facts(self) -> dict[str, Any]:
        """Return the name of the source, and under `found` the result of `Tallies.facts`."""
        return json.loads(self["facts"].tobytes())

    def rows(self) -> Iterator[CommentTexts]:
        """Yield each comment with its texts, at least one."""
        for line in self["rows"].tobytes().splitlines():
            yield CommentTexts(*json.loads(line))

    def _read(self) -> bytes | None:
        """Return the content of the file without its checksum; None if the file is missing or damaged."""
        try:
            whole = self.file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read ({error.strerror})") from None
        data, checksum = whole[:-_CHECKSUM], whole[-_CHECKSUM:]
        return data if _checksum(data) == checksum else None


class PartWriter:
    """Writer of a part, which collects comments."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.texts: list[tuple[int, int, int]] = []
        self.signatures: list[NDArray[np.uint8]] = []
        self.keys: list[tuple[int, int, int]] = []
        self.overrides: list[tuple[int, int]] = []

    def add(self, comment: Comment, cleaned: CommentTexts, unique_name: bool) -> None:
        """Add a comment with its cleaned texts, at least one.

        `unique_name` says whether no other comment of the source file is on a function of the same name. Only
        then the name identifies the function in other versions of the file.
        """
        repository = comment.repository
        identities = [_number(identity(text)) for text in cleaned.texts]
        # The hash of the first text stands for the comment.
        self.texts += [(each, identities[0], _hash(repository)) for each in identities]
        self.signatures += [signature(text) for text in cleaned.texts]
        # A function outside of a class has the owner "".
        *_, owner, method = ("", "", *comment.function.split("."))
        self.overrides += [
            (len(self.keys), _hash(repository, above, method)) for above in comment.overrides.split()
        ]
        function = _hash(repository, comment.path, comment.function) if unique_name else 0
        name = _hash(repository, owner, method) if owner else 0
        self.keys.append((identities[0] if cleaned.summary else 0, function, name))
        self.lines.append(json.dumps([cleaned.comment, cleaned.summary, cleaned.rest]))

    def write(self, file: Path, facts: dict[str, Any]) -> None:
        """Write the collected comments and `facts` (see `Part.facts`) atomically."""
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
            with output_file.temporary(file) as partial:
                partial.write_bytes(data + _checksum(data))
                output_file.sync(partial)
                partial.replace(file)
        except OSError as error:
            raise InputError(f"{file}: cannot be written ({error.strerror})") from None


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM).digest()


def _hash(*names: str) -> int:
    """Return one 64-bit hash of a repository and names in it; 0 if the repository is unknown."""
    data = "\0".join(names).encode("utf-8", "replace")
    return _number(hashlib.blake2b(data, digest_size=8).digest()) if names[0] else 0


def _number(eight: bytes) -> int:
    return int.from_bytes(eight, "big")
