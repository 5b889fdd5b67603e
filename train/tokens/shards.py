"""Token ids on disk: memory-mapped parts with checksums, written by all cores.

shards.json         what they were made with; texts, tokens and SHA-256 of every part
ids-00000.npy       the ids of the first part's texts, one after the other
lengths-00000.npy   the tokens of each of these texts
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.io import files
from simllm.io.folders import replacing
from simllm.model.tokenizer import Tokenizer

_PART = 8 * 2**20  # bytes of text a part: the parts do not depend on the number of workers
_TEXTS_AT_ONCE = 10_000
_INFO = "shards.json"


@dataclass(frozen=True)
class Shards:
    """N tokenized texts, `<s>` and `</s>` included, in the order of the corpus."""

    parts: list[np.ndarray]  # (tokens,) each: uint16, or int32 for a vocabulary past 65,536
    lengths: np.ndarray  # (N,) int64, tokens of each text
    truncated: int = 0  # texts cut at the model's longest input

    @property
    def tokens(self) -> int:
        """Tokens of all texts."""
        return int(self.lengths.sum())

    def blocks(self, length: int) -> Shards:
        """The same tokens cut every `length` tokens, wherever a text ends.

        The last tokens of a part that fill no block are left out.
        """
        counts = [len(part) // length for part in self.parts]
        parts = [part[: count * length] for part, count in zip(self.parts, counts, strict=True)]
        return Shards(parts, np.full(sum(counts), length, np.int64), self.truncated)

    def read(self, places: np.ndarray) -> np.ndarray:
        """The int64 ids at these places, counted in tokens from the first part's first."""
        ends = np.cumsum([len(part) for part in self.parts])
        owner = np.searchsorted(ends, places, side="right")
        ids = np.empty(len(places), np.int64)
        for number in np.unique(owner):
            mine = owner == number
            ids[mine] = self.parts[number][places[mine] - (ends[number] - len(self.parts[number]))]
        return ids


class Damaged(InputError):  # noqa: N818 (the error is the user's to read, as InputError)
    """A file of a folder of shards is missing, incomplete, or has another checksum."""


def write(texts: Path, corpus_hash: str, tokenizer: Tokenizer, max_length: int, folder: Path) -> Shards:
    """Tokenize a file of one text a line; texts longer than `max_length` tokens are cut and counted.

    A folder that was written from the same corpus with the same tokenizer and length is opened as
    it is; a damaged one is written again. Raises InputError if a file cannot be read or written.
    """
    made_with = {"corpus": corpus_hash, "tokenizer": tokenizer.hash, "max_length": max_length}
    try:
        if _facts(folder).get("made_with") == made_with:
            return load(folder)
    except Damaged as error:
        if folder.exists():
            print(f"warning: {error}; written anew", file=sys.stderr)
    with replacing(folder) as partial:
        stop = threading.Event()

        def write_part(number: int, lines: tuple[int, int]) -> dict[str, Any]:
            return _write_part(texts, lines, tokenizer, max_length, _files(partial, number), stop)

        with ThreadPoolExecutor(os.cpu_count()) as pool:  # the tokenizer works outside of Python's lock
            try:
                parts = list(pool.map(write_part, itertools.count(), _ranges(texts)))
            except BaseException:  # a signal need not wait for whole parts
                stop.set()
                raise
        files.write(partial / _INFO, json.dumps({"made_with": made_with, "parts": parts}, indent=1) + "\n")
    return load(folder)


def load(folder: Path) -> Shards:
    """Open a folder of shards.

    Raises Damaged if a file is missing or its checksum differs, InputError if it cannot be read.
    """
    parts, lengths, truncated = [], [], 0
    for number, facts in enumerate(_facts(folder)["parts"]):
        ids_file, lengths_file = _files(folder, number)
        try:
            if digest(ids_file, lengths_file) != facts["sha256"]:
                raise Damaged(f"{ids_file}: damaged (checksum differs)")
            parts.append(np.load(ids_file, mmap_mode="r"))
            lengths.append(np.load(lengths_file))
        except OSError as error:
            raise _unreadable(error, folder) from None
        truncated += facts["truncated"]
    return Shards(parts, np.concatenate(lengths).astype(np.int64), truncated)


def _facts(folder: Path) -> dict[str, Any]:
    """Return what `shards.json` holds: `made_with` and `parts`."""
    file = folder / _INFO
    try:
        facts = json.loads(file.read_bytes())
    except OSError as error:
        raise _unreadable(error, file) from None
    except ValueError:
        raise Damaged(f"{file}: damaged (not JSON)") from None
    if not isinstance(facts, dict) or not {"made_with", "parts"} <= facts.keys():
        raise Damaged(f"{file}: damaged (expected made_with and parts)")
    return facts


def _unreadable(error: OSError, place: Path) -> InputError:
    """Return the exception for a file that cannot be read; only a missing one may be written again."""
    kind = Damaged if isinstance(error, FileNotFoundError) else InputError
    return kind(f"{error.filename or place}: cannot be read ({error.strerror})")


def _ranges(texts: Path) -> Iterator[tuple[int, int]]:
    """Byte ranges of about `_PART` bytes, each of whole lines."""
    size, start = texts.stat().st_size, 0
    with texts.open("rb") as file:
        while start < size:
            file.seek(min(start + _PART, size))
            file.readline()
            yield start, file.tell()
            start = file.tell()


def _write_part(
    texts: Path,
    lines: tuple[int, int],
    tokenizer: Tokenizer,
    max_length: int,
    paths: tuple[Path, Path],
    stop: threading.Event,
) -> dict[str, Any]:
    """Tokenize a range of bytes; return what `shards.json` says about it. May give up once `stop` is set."""
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
    with texts.open("rb") as file:
        file.seek(lines[0])
        rest = iter(file.read(lines[1] - lines[0]).decode("ascii").splitlines())
    chunks: list[np.ndarray] = []
    lengths: list[int] = []
    truncated = 0
    while not stop.is_set() and (chunk := list(itertools.islice(rest, _TEXTS_AT_ONCE))):
        whole = tokenizer.encode(chunk)
        ids = [tokenizer.truncate(text, max_length) for text in whole]
        truncated += sum(len(text) > max_length for text in whole)
        lengths += map(len, ids)
        chunks.append(np.fromiter(itertools.chain.from_iterable(ids), dtype))
    np.save(paths[0], np.concatenate(chunks))
    np.save(paths[1], np.array(lengths, np.int32))
    return {
        "texts": len(lengths),
        "tokens": sum(lengths),
        "truncated": truncated,
        "sha256": digest(*paths),
    }


def _files(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"ids-{number:05d}.npy", folder / f"lengths-{number:05d}.npy"


def digest(*paths: Path) -> str:
    """Return the SHA-256, in hex digits, of the checksums of several files."""
    whole = hashlib.sha256()
    for file in paths:
        with file.open("rb") as data:
            whole.update(hashlib.file_digest(data, "sha256").digest())
    return whole.hexdigest()
