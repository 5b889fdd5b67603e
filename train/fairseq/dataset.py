"""A pretraining run's shards as fairseq's memory-mapped dataset.

    train.bin  train.idx    the training texts
    valid.bin  valid.idx    the held-out ones
    dict.txt                the vocabulary, counted over the training texts

A text is its tokens and `</s>`, as `fairseq-preprocess` writes it. Our `<s>` is left out: MPNet's
task puts one in front of every sample, which with `--sample-break-mode complete` is several texts,
with `eos` one. Format: `MMapIndexedDataset` in fairseq/data/indexed_dataset.py of fairseq 0.12.2,
unchanged since 0.8, on which MPNet's own code stands.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io.folders import replacing
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.corpus import build
from train.fairseq import dictionary
from train.tokens import shards

_MAGIC, _VERSION = b"MMIDIDX\0\0", 1
_CODES = {"<u2": 8, "<i4": 4}  # fairseq's number of each dtype
_BOS = SPECIAL_TOKENS.index("<s>")
_AT_ONCE = 2**18  # tokens or texts in memory


def export(run: Path, out: Path) -> None:
    """Write the folder `out` from a pretraining run's; raise InputError for what is not one."""
    tokenizer = Tokenizer.load(_tokenizer_file(run))
    folders = {"train": run / "shards" / build.TRAIN, "valid": run / "shards" / build.TEST}
    with replacing(out) as partial:
        for stem, folder in folders.items():
            if not folder.is_dir():
                raise InputError(f"{folder}: no such shards; expected the folder of a pretraining run")
            split = shards.load(folder)
            try:
                counts = write(partial / stem, split.parts, split.lengths, tokenizer.vocab_size)
            except InputError as error:
                raise InputError(f"{folder}: {error}") from None
            if stem == "train":
                dictionary.write(partial / "dict.txt", tokenizer, counts)


def write(stem: Path, parts: Iterable[np.ndarray], lengths: np.ndarray, vocab_size: int) -> np.ndarray:
    """Write `stem`.bin and `stem`.idx; returns how often each id was written, (vocab_size,) int64.

    `parts` are (tokens,) ids whose concatenation is all texts, each from `<s>` to `</s>`;
    `lengths` (N,) the tokens of each. Raises InputError where these contradict each other.
    """
    dtype = np.dtype("<u2" if vocab_size <= 2**16 else "<i4")
    counts = np.zeros(vocab_size, np.int64)
    with stem.with_suffix(".bin").open("wb") as target:
        for part in parts:
            for ids in _blocks(part):
                found = np.bincount(ids)
                if len(found) > vocab_size:
                    raise InputError(f"token id {len(found) - 1}, but the tokenizer has {vocab_size} tokens")
                counts[: len(found)] += found
                target.write(ids[ids != _BOS].astype(dtype).tobytes())
    if not 0 < counts[_BOS] == len(lengths) or counts.sum() != lengths.sum():
        raise InputError(f"{counts[_BOS]} texts begin and {len(lengths)} have a length; damaged or empty")
    counts[_BOS] = 0
    _write_index(stem.with_suffix(".idx"), lengths, dtype)
    return counts


def _write_index(file: Path, lengths: np.ndarray, dtype: np.dtype) -> None:
    """Header, int32 tokens of each text, int64 byte at which it starts."""
    with file.open("wb") as target:
        target.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[dtype.str], len(lengths)))
        for block in _blocks(lengths):
            target.write((block - 1).astype("<i4").tobytes())
        start = 0
        for block in _blocks(lengths):
            ends = start + np.cumsum(block - 1, dtype=np.int64) * dtype.itemsize
            target.write(np.concatenate([[start], ends[:-1]]).astype("<i8").tobytes())
            start = ends[-1]


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(array), _AT_ONCE):
        yield array[start : start + _AT_ONCE]


def _tokenizer_file(run: Path) -> Path:
    """The tokenizer of the run's model, or, before there is one, the vocabulary that was learned."""
    model = run / "model" / "tokenizer.json"
    found = [model] if model.is_file() else sorted(run.glob("vocabulary/*/tokenizer.json"))
    if len(found) != 1:
        raise InputError(f"{run}: {len(found)} vocabularies; expected the folder of a pretraining run")
    return found[0]
