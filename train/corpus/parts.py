"""Parts of a corpus: the files between reading and merging, and the tallies of what was read or left out."""

from __future__ import annotations

import hashlib
import io
import json
from bisect import insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.io import output_file
from train.corpus.comments import Comment
from train.corpus.deduplicate import SIGNATURE, identity, signature

LONGEST = 400  # characters of an example; the rest is cut


class Tally:
    """A counter by kind, with up to `keep` examples of each kind; an example is a tuple of texts.

    The examples with the smallest hashes are stored, so that they do not depend on the order of additions.
    """

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, kind: str, *example: str) -> None:
        """Count one thing of a kind, and add it as an example."""
        self.counts[kind] += 1
        self.add_example(kind, *example)

    def add_example(self, kind: str, *example: str) -> None:
        """Add an example without counting it."""
        # Names that the system cannot decode have surrogates, which UTF-8 lacks.
        texts = [text[:LONGEST].encode("utf-8", "replace") for text in example]
        entry = (crc32(b"\t".join(texts)), tuple(text.decode() for text in texts))
        kept = self._examples.setdefault(kind, [])
        if (len(kept) < self.keep or entry < kept[-1]) and entry not in kept:
            insort(kept, entry)
            del kept[self.keep :]

    @property
    def examples(self) -> dict[str, list[tuple[str, ...]]]:
        """The examples by kind, sorted by their hashes."""
        return {kind: [texts for _, texts in kept] for kind, kept in self._examples.items()}


@dataclass(frozen=True)
class Tallies:
    """The tallies of a build.

    Most kinds are reasons for leaving something out; "read" counts all files or texts.

    Attributes:
        files: Of source files; an example is a path, often followed by an error message.
        comments: Of comments that a filter rejected; an example is the raw comment.
        texts: Of the texts of comments.
    """

    files: Tally = field(default_factory=Tally)
    comments: Tally = field(default_factory=Tally)
    texts: Tally = field(default_factory=Tally)

    def merge(self, facts: dict[str, Any]) -> None:
        """Add the `facts` of other tallies, which may come from another process."""
        for name, other in facts.items():
            own: Tally = getattr(self, name)
            own.counts.update(other["counts"])
            for kind, examples in other["examples"].items():
                for example in examples:
                    own.add_example(kind, example)

    def facts(self) -> dict[str, Any]:
        """Return the `counts` and `examples` of each tally as JSON values."""
        tallies: dict[str, Tally] = {part.name: getattr(self, part.name) for part in fields(self)}
        return {
            name: {
                "counts": dict(tally.counts),
                "examples": {kind: [text for (text,) in some] for kind, some in tally.examples.items()},
            }
            for name, tally in tallies.items()
        }

    def problems(self) -> list[str]:
        """Return a warning for each kind of problem in reading files, with its count and one example."""
        return [
            f"{kind} ({count:,}): {self.files.examples[kind][0][0]}"
            for kind, count in self.files.counts.items()
            if kind.startswith("unreadable")
        ]


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
