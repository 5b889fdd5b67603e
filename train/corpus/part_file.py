"""Reading and writing of one part of a corpus: a file with the comments from one batch of source files.

The file has the comments with their cleaned texts. It also has hashes of the texts, to find equal and similar
texts, and hashes of function names, to find pairs of comments that mean the same.
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
_CHECKSUM = 16  # bytes


@dataclass(frozen=True)
class CommentTexts:
    """A comment with its cleaned texts.

    Attributes:
        comment: The comment before cleaning, as a dict: the attributes of a `Comment` by name, such as
            "summary" and "language".
        summary: The cleaned summary (first sentence); "" if the summary was rejected, for example because it
            is too long.
        rest: The other cleaned paragraphs, without rejected ones.
    """

    comment: dict[str, str]
    summary: str
    rest: list[str]

    @property
    def texts(self) -> list[str]:
        """All cleaned texts of the comment: the summary (first sentence), then the other paragraphs.

        Texts that were rejected, for example because they are too long, are left out.
        """
        return [self.summary, *self.rest] if self.summary else self.rest


class Part:
    """Reader for one part of a corpus: a file with the comments from one batch of source files.

    The file has a checksum at its end.

    Attributes:
        file: The path of the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def __getitem__(self, table: str) -> NDArray[Any]:
        """Return one of the arrays in the file, by its name.

        A part with R comments, which have T texts in total, has these arrays:

        - `texts`: (T,) structured array of type `TEXT`, with hashes of each text, of its comment and of
          its repository.
        - `signatures`: (T, SIGNATURE) bytes, the MinHash signatures of the texts.
        - `keys`: (R,) structured array of type `KEYS`, with hashes of each comment's summary and function.
          `PairFinder` uses them to find pairs of comments that mean the same.
        - `overrides`: structured array of type `OVERRIDES`. A commented method has one entry for each
          direct supertype of its class. An entry has the index of the comment, and a hash of the repository,
          the supertype and the method's name. If the supertype has a method of this name, the commented
          method overrides it.
        - `rows`: bytes of JSON lines, with the comments and their texts. The method `rows` parses them.
        - `facts`: bytes of a JSON object, with facts such as the source of the comments. The method `facts`
          parses it.

        Raises:
            InputError: The file is missing, damaged or unreadable.
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
        """Return facts about this part of a corpus: its source, and counts of what was read or left out.

        Returns:
            A dict. `source` is the name of the folder, file or data set from which the comments were read.
            `found` has counts and examples of what was read or left out; see `Tallies.facts`.
        """
        return json.loads(self["facts"].tobytes())

    def rows(self) -> Iterator[CommentTexts]:
        """Yield each comment in this file, together with its cleaned texts.

        The texts are the comment's summary (first sentence) and its other paragraphs. Texts that were
        rejected, for example because they are too long, are left out. Every comment has at least one text.
        """
        for line in self["rows"].tobytes().splitlines():
            yield CommentTexts(*json.loads(line))

    def _read(self) -> bytes | None:
        """Return the content of the file without its checksum; None if the file is missing or damaged.

        Raises:
            InputError: The file exists, but cannot be read.
        """
        try:
            whole = self.file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read ({error.strerror})") from None
        data, checksum = whole[:-_CHECKSUM], whole[-_CHECKSUM:]
        return data if _checksum(data) == checksum else None


class PartWriter:
    """Writer for one part of a corpus: it collects comments, and writes them to the file of the part.

    A part has the comments from one batch of source files, with their cleaned texts.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.texts: list[tuple[int, int, int]] = []
        self.signatures: list[NDArray[np.uint8]] = []
        self.keys: list[tuple[int, int, int]] = []
        self.overrides: list[tuple[int, int]] = []

    def add(self, comment: Comment, cleaned: CommentTexts, unique_name: bool) -> None:
        """Add a comment, with its cleaned texts, to this part of the corpus.

        Args:
            comment: The comment.
            cleaned: The same comment with its cleaned texts (at least one).
            unique_name: True if no other commented function of the source file has the same name. Then the
                name identifies the function in other versions of the file, and `PairFinder` pairs the comment
                with comments on these versions of the function. If false, it does not.
        """
        repository = comment.repository
        identities = [_number(identity(text)) for text in cleaned.texts]
        self.texts += [(each, identities[0], _hash(repository)) for each in identities]
        self.signatures += [signature(text) for text in cleaned.texts]
        *_, owner, method = ("", "", *comment.function.split("."))
        self.overrides += [
            (len(self.keys), _hash(repository, above, method)) for above in comment.overrides.split()
        ]
        function = _hash(repository, comment.path, comment.function) if unique_name else 0
        name = _hash(repository, owner, method) if owner else 0
        self.keys.append((identities[0] if cleaned.summary else 0, function, name))
        self.lines.append(json.dumps([cleaned.comment, cleaned.summary, cleaned.rest]))

    def write(self, file: Path, facts: dict[str, Any]) -> None:
        """Write the collected comments atomically.

        Args:
            file: The file to write.
            facts: A dict of JSON values, which is also stored in the file. `source` names the folder, file or
                data set from which the comments come. `found` has counts and examples of the files, comments
                and texts that were read or left out (see `Tallies.facts`).

        Raises:
            InputError: The file cannot be written.
        """
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
    """Return one 64-bit hash of all names together; 0 if the first name is empty.

    The first name is a repository; "" means an unknown repository. The other names identify a function in the
    repository, such as the file and the function's full name.
    """
    data = "\0".join(names).encode("utf-8", "replace")
    return _number(hashlib.blake2b(data, digest_size=8).digest()) if names[0] else 0


def _number(eight: bytes) -> int:
    return int.from_bytes(eight, "big")
