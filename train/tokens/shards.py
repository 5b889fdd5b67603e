"""Token shards: the token ids of a corpus on disk, in memory-mapped files with checksums.

A corpus is split into parts of about 8 MiB of text. A folder of token shards has these files:

shards.json         hashes of corpus and tokenizer; for each part, its number of texts and tokens, and SHA-256
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
    """N tokenized texts in the order of the corpus. Each text has the tokens `<s>` and `</s>` at its ends.

    Attributes:
        parts: Memory-mapped arrays of token ids. Each array has the texts of one part of the corpus, one text
            after the other. The type is uint16, or int32 if the vocabulary has more than 65,536 tokens.
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
        """Divide the token ids of all texts into blocks of equal length, to give the model full inputs.

        A block may begin or end in the middle of a text. The last tokens of each array in `self.parts` are
        left out if they do not fill a block.

        Args:
            length: The number of tokens in a block.

        Returns:
            Shards in which each block counts as a text.
        """
        counts = [len(part) // length for part in self.parts]
        parts = [part[: count * length] for part, count in zip(self.parts, counts, strict=True)]
        return Shards(parts, np.full(sum(counts), length, np.int64), self.truncated)

    def read_tokens(self, places: np.ndarray) -> np.ndarray:
        """Return the token ids at K positions.

        Args:
            places: (K,) positions of tokens. They count from 0 at the start of the first array in `parts`,
                and continue from each array to the next.

        Returns:
            (K,) int64 token ids.
        """
        ends = np.cumsum([len(part) for part in self.parts])
        owner = np.searchsorted(ends, places, side="right")
        ids = np.empty(len(places), np.int64)
        for number in np.unique(owner):
            own = owner == number
            ids[own] = self.parts[number][places[own] - (ends[number] - len(self.parts[number]))]
        return ids


class DamagedShardsError(InputError):
    """A file of token shards (token ids on disk) is missing, incomplete, or has a wrong checksum."""


def write_or_load(
    texts: Path, corpus_hash: str, tokenizer: Tokenizer, max_length: int, folder: Path
) -> Shards:
    """Load the token shards in a folder if they fit, else tokenize the texts and write shards.

    Shards fit if they are intact and were made from the same corpus, tokenizer and `max_length`.

    Args:
        texts: A file with one text per line.
        corpus_hash: A hash that identifies the corpus from which the texts come.
        tokenizer: The tokenizer.
        max_length: The model's largest input length in tokens; longer texts are cut and counted.
        folder: The folder of the shards.

    Returns:
        The shards, whose token ids are memory-mapped.

    Raises:
        InputError: A file cannot be read or written.
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

        with ThreadPoolExecutor(os.cpu_count()) as pool:  # the tokenizer works outside of Python's lock
            try:
                parts = list(pool.map(write_part, itertools.count(), _ranges(texts)))
            except BaseException:  # after a signal, the workers need not finish their parts
                stop.set()
                raise
        output_file.write(
            partial / _INFO, json.dumps({"made_with": made_with, "parts": parts}, indent=1) + "\n"
        )
    return load(folder)


def load(folder: Path) -> Shards:
    """Load the token shards in a folder; the token ids are memory-mapped.

    Raises:
        DamagedShardsError: A file is missing or its checksum differs.
        InputError: A file cannot be read.
    """
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
    """Read the file `shards.json` in a folder of token shards (token ids on disk).

    Returns:
        A dict with two keys. `made_with` has the hash of the corpus, the hash of the tokenizer, and the
        model's largest input length. `parts` has an entry for each part of the corpus: the numbers of texts,
        tokens and truncated texts, and the SHA-256 of the part's files.

    Raises:
        DamagedShardsError: The file is missing or damaged.
        InputError: The file cannot be read.
    """
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
    """Make the error for a file that cannot be read.

    Args:
        error: The error of the operating system.
        place: The file or folder to name if `error` names none.

    Returns:
        A `DamagedShardsError` if the file is missing, else an `InputError`.
    """
    kind = DamagedShardsError if isinstance(error, FileNotFoundError) else InputError
    return kind(f"{error.filename or place}: cannot be read ({error.strerror})")


def _ranges(texts: Path) -> Iterator[tuple[int, int]]:
    """Split a file of texts into parts of about 8 MiB that end at line ends; yield where each part lies.

    Args:
        texts: The file with one text per line.

    Yields:
        For each part, the position of its first byte in the file, and the position after its last byte.
    """
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
    """Tokenize consecutive lines of a file of texts, and write their token ids to disk.

    Args:
        texts: The file with one text per line.
        lines: Where the lines lie in the file: the position of their first byte, and the position after
            their last byte.
        tokenizer: The tokenizer.
        max_length: The largest number of tokens of a text; longer texts are cut.
        paths: The two files to write: the token ids, and the number of tokens of each text.
        stop: Another thread sets this event to cancel the work. The function then leaves out the remaining
            lines.

    Returns:
        The entry for these files in `shards.json`: the numbers of texts, tokens and truncated texts, and
        the SHA-256 of the files.
    """
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
    """Return the paths of the two files for one part of the corpus: its token ids, and its text lengths.

    Args:
        folder: The folder of token shards.
        number: The number of the part, from 0.
    """
    return folder / f"ids-{number:05d}.npy", folder / f"lengths-{number:05d}.npy"


def digest(*paths: Path) -> str:
    """Return one SHA-256 for the contents of several files, in hex digits."""
    whole = hashlib.sha256()
    for file in paths:
        with file.open("rb") as data:
            whole.update(hashlib.file_digest(data, "sha256").digest())
    return whole.hexdigest()
