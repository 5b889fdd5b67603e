"""Token shards: the token ids of a corpus on disk, in memory-mapped files with checksums.

A folder has these files:

    shards.json         what the shards were made from; for each part, its counts and SHA-256
    ids-00000.npy       token ids of the texts in the first part, one text after the other
    lengths-00000.npy   number of tokens of each text in the first part
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
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.model.tokenizer import Tokenizer

_PART = 8 * 2**20  # bytes of text in a part
_TEXTS_AT_ONCE = 10_000
_INFO = "shards.json"


@dataclass(frozen=True)
class Shards:
    """N tokenized texts in the order of the corpus, each from `<s>` to `</s>`.

    Attributes:
        parts: Memory-mapped token ids of each part: uint16, or int32 for more than 65,536 tokens.
        lengths: (N,) int64 number of tokens of each text.
        truncated: Number of texts that were cut to the model's largest input length.
    """

    parts: list[np.ndarray]
    lengths: np.ndarray
    truncated: int = 0

    @property
    def tokens(self) -> int:
        """Number of tokens of all texts together."""
        return int(self.lengths.sum())

    def blocks(self, length: int) -> Shards:
        """Divide the token ids into blocks of equal length, cut anywhere, each of which then counts as a
        text.

        The last tokens of each part are left out if they do not fill a block.
        """
        counts = [len(part) // length for part in self.parts]
        parts = [part[: count * length] for part, count in zip(self.parts, counts, strict=True)]
        return Shards(parts, np.full(sum(counts), length, np.int64), self.truncated)

    def read_tokens(self, places: np.ndarray) -> np.ndarray:
        """Return the (K,) int64 token ids at (K,) places, which count through all parts."""
        ends = np.cumsum([len(part) for part in self.parts])
        owner = np.searchsorted(ends, places, side="right")
        ids = np.empty(len(places), np.int64)
        for number in np.unique(owner):
            own = owner == number
            ids[own] = self.parts[number][places[own] - (ends[number] - len(self.parts[number]))]
        return ids


class DamagedShardsError(InputError):
    """A file of token shards is missing, incomplete, or has a wrong checksum."""


def write_or_load(
    texts: Path, corpus_hash: str, tokenizer: Tokenizer, max_length: int, folder: Path
) -> Shards:
    """Load the shards in a folder if they are intact and fit, else tokenize the lines of `texts`.

    Shards fit if they are from the same corpus (by its hash), tokenizer and `max_length`, to which texts are
    cut.
    """
    made_with = {"corpus": corpus_hash, "tokenizer": tokenizer.hash, "max_length": max_length}
    try:
        if _facts(folder).get("made_with") == made_with:
            return load(folder)
    except DamagedShardsError as error:
        if folder.exists():
            print(f"warning: {error}; written anew", file=sys.stderr)
    with OutputFolder(folder, "token shards").replacing(keep_edits=False) as partial:
        stop = threading.Event()

        def write_part(number: int, lines: tuple[int, int]) -> dict[str, Any]:
            return _write_part(texts, lines, tokenizer, max_length, _files(partial, number), stop)

        # Threads are enough, because the tokenizer works outside of Python's lock.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                parts = list(pool.map(write_part, itertools.count(), _ranges(texts)))
            # After a signal, the workers need not finish their parts.
            except BaseException:
                stop.set()
                raise
        output_file.write(
            partial / _INFO, json.dumps({"made_with": made_with, "parts": parts}, indent=1) + "\n"
        )
    return load(folder)


def load(folder: Path) -> Shards:
    """Load the shards in a folder, or raise DamagedShardsError."""
    parts, lengths, truncated = [], [], 0
    try:
        for number, facts in enumerate(_facts(folder)["parts"]):
            ids_file, lengths_file = _files(folder, number)
            if digest(ids_file, lengths_file) != facts["sha256"]:
                raise DamagedShardsError(f"{ids_file}: damaged (checksum differs)")
            parts.append(np.load(ids_file, mmap_mode="r"))
            lengths.append(np.load(lengths_file))
            if parts[-1].ndim != 1 or lengths[-1].min(initial=1) < 1 or lengths[-1].sum() != len(parts[-1]):
                raise DamagedShardsError(f"{lengths_file}: damaged (not the lengths of {ids_file.name})")
            truncated += int(facts["truncated"])
    except OSError as error:
        raise _unreadable(error, folder) from None
    except (KeyError, TypeError, AttributeError, EOFError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise DamagedShardsError(f"{folder / _INFO}: damaged (not the description of its files)") from None
    return Shards(parts, np.concatenate(lengths).astype(np.int64), truncated)


def _facts(folder: Path) -> dict[str, Any]:
    """Read `shards.json`: `made_with`, and the counts and SHA-256 of each part under `parts`."""
    file = folder / _INFO
    try:
        facts = json.loads(file.read_bytes())
    except OSError as error:
        raise _unreadable(error, file) from None
    except (ValueError, RecursionError):
        raise DamagedShardsError(f"{file}: damaged (not JSON)") from None
    if not isinstance(facts, dict) or not {"made_with", "parts"} <= facts.keys() or not facts["parts"]:
        raise DamagedShardsError(f"{file}: damaged (expected made_with and parts)")
    return facts


def _unreadable(error: OSError, place: Path) -> InputError:
    """Make the error for a file that cannot be read; `place` is named if `error` names no file."""
    kind = DamagedShardsError if isinstance(error, FileNotFoundError) else InputError
    return kind(f"{error.filename or place}: cannot be read ({error.strerror})")


def _ranges(texts: Path) -> Iterator[tuple[int, int]]:
    """Yield the first byte and the byte after the last of each part of a file; parts end at line ends."""
    size, start = texts.stat().st_size, 0
    with texts.open("rb") as file:
        while start < size:
            file.seek(min(start + _PART, size))
            file.readline()  # the rest of the line
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
    """Tokenize the bytes `lines` of a file, write both files of the part, and return its facts."""
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
    return {"texts": len(lengths), "tokens": sum(lengths), "truncated": truncated, "sha256": digest(*paths)}


def _files(folder: Path, number: int) -> tuple[Path, Path]:
    """Return the files of a part: its token ids, and its text lengths."""
    return folder / f"ids-{number:05d}.npy", folder / f"lengths-{number:05d}.npy"


def digest(*paths: Path) -> str:
    """Return one SHA-256 for the contents of several files, in hex digits."""
    whole = hashlib.sha256()
    for file in paths:
        with file.open("rb") as data:
            whole.update(hashlib.file_digest(data, "sha256").digest())
    return whole.hexdigest()
