"""Token ids on disk, memory-mapped: one flat array of ids, one of where each text starts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simllm.files import fresh_folder, replace_folder
from simllm.tokenizer import Tokenizer

_TEXTS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Shard:
    """N tokenized texts: `ids[starts[i] : starts[i + 1]]` is text i, boundaries included."""

    ids: np.ndarray  # (tokens,) uint16, or int32 for a vocabulary past 65,536
    starts: np.ndarray  # (N + 1,) int64
    truncated: int  # texts cut at the model's longest input

    @property
    def lengths(self) -> np.ndarray:
        """(N,) number of tokens of each text."""
        return np.diff(self.starts)

    def texts(self, indices: np.ndarray, length: int) -> np.ndarray:
        """(len(indices), length) int64 ids of texts that all have this length."""
        return self.ids[self.starts[indices][:, None] + np.arange(length)].astype(np.int64)


def write(texts: Path, corpus_hash: str, tokenizer: Tokenizer, max_length: int, folder: Path) -> Shard:
    """Tokenize a file of one text a line; texts past `max_length` tokens are cut and counted.

    A folder that was written from the same corpus with the same tokenizer and length is
    opened as it is.
    """
    made_with: dict[str, str | int] = {
        "corpus": corpus_hash,
        "tokenizer": tokenizer.hash,
        "max_length": max_length,
    }
    info = folder / "shard.json"
    if not info.is_file() or json.loads(info.read_text())["made_with"] != made_with:
        _write(texts, tokenizer, made_with, folder)
    return Shard(
        ids=np.load(folder / "ids.npy", mmap_mode="r"),
        starts=np.load(folder / "starts.npy", mmap_mode="r"),
        truncated=json.loads(info.read_text())["truncated"],
    )


def _write(texts: Path, tokenizer: Tokenizer, made_with: dict[str, str | int], folder: Path) -> None:
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
    max_length = int(made_with["max_length"])
    parts, lengths, truncated = [], [0], 0
    for encoded in _encoded(texts, tokenizer):
        shortened = [tokenizer.cut(ids, max_length) for ids in encoded]
        truncated += sum(len(ids) > max_length for ids in encoded)
        lengths += map(len, shortened)
        parts.append(np.fromiter(itertools.chain.from_iterable(shortened), dtype))
    partial = fresh_folder(folder)
    np.save(partial / "ids.npy", np.concatenate(parts))
    np.save(partial / "starts.npy", np.cumsum(lengths, dtype=np.int64))
    (partial / "shard.json").write_text(json.dumps({"made_with": made_with, "truncated": truncated}))
    replace_folder(partial, folder)


def _encoded(texts: Path, tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
    with texts.open(encoding="ascii") as lines:
        while chunk := [line.rstrip("\n") for line in itertools.islice(lines, _TEXTS_AT_ONCE)]:
            yield tokenizer.encode(chunk)
