"""Export of the shards of a pretraining run as fairseq's memory-mapped dataset.

    train.bin  train.idx    the training texts
    valid.bin  valid.idx    the held-out texts
    dict.txt                the tokens of the vocabulary, and how often they occur in the training texts

The format is `MMapIndexedDataset` of fairseq 0.12.2 (fairseq/data/indexed_dataset.py). It is the same in
fairseq 0.8, on which MPNet's code is based.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.corpus import build
from train.fairseq import dictionary
from train.tokens import shards

_MAGIC, _VERSION = b"MMIDIDX\0\0", 1
_CODES = {"<u2": 8, "<i4": 4}  # fairseq's code of each dtype
_BOS = SPECIAL_TOKENS.index("<s>")
_CHUNK = 2**18  # tokens or texts that are in memory at once


def export_dataset(run_folder: Path, out: Path) -> None:
    """Convert the shards of the pretraining run in `run_folder` to a fairseq dataset in `out`."""
    tokenizer = Tokenizer.load(_tokenizer_file(run_folder))
    folders = {"train": run_folder / "shards" / build.TRAIN, "valid": run_folder / "shards" / build.TEST}
    with OutputFolder(out, "a fairseq dataset").replacing() as partial:
        for stem, folder in folders.items():
            if not folder.is_dir():
                raise InputError(f"{folder}: no such shards; expected the folder of a pretraining run")
            split = shards.load(folder)
            try:
                counts = write_texts(partial / stem, split.parts, split.lengths, tokenizer.vocab_size)
            except InputError as error:
                raise InputError(f"{folder}: {error}") from None
            if stem == "train":
                dictionary.write_dictionary(partial / "dict.txt", tokenizer, counts)


def write_texts(stem: Path, parts: Iterable[np.ndarray], lengths: np.ndarray, vocab_size: int) -> np.ndarray:
    """Write the token ids to `stem`.bin and the index to `stem`.idx; return the (V,) counts of the token ids.

    The concatenated `parts` have all texts, each from `<s>` to `</s>`; `lengths` is (N,). Raises InputError
    if they do not fit together.
    """
    dtype = np.dtype("<u2" if vocab_size <= 2**16 else "<i4")
    counts = np.zeros(vocab_size, np.int64)
    with stem.with_suffix(".bin").open("wb") as target:
        for part in parts:
            for ids in _chunks(part):
                id_counts = np.bincount(ids)
                if len(id_counts) > vocab_size:
                    raise InputError(
                        f"token id {len(id_counts) - 1}, but the tokenizer has {vocab_size} tokens"
                    )
                counts[: len(id_counts)] += id_counts
                # A text is its tokens and `</s>`, like `fairseq-preprocess` writes it. `<s>` is left out,
                # because MPNet's training code for fairseq adds it before every sample: one text or, with
                # `--sample-break-mode complete`, several texts.
                target.write(ids[ids != _BOS].astype(dtype).tobytes())
    if not 0 < counts[_BOS] == len(lengths) or counts.sum() != lengths.sum():
        raise InputError(f"{counts[_BOS]} texts begin and {len(lengths)} have a length; damaged or empty")
    counts[_BOS] = 0
    _write_index(stem.with_suffix(".idx"), lengths, dtype)
    return counts


def _write_index(file: Path, lengths: np.ndarray, dtype: np.dtype) -> None:
    """Write the header, and the length and the byte offset of each text; `lengths` (N,) counts `<s>`."""
    with file.open("wb") as target:
        target.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[dtype.str], len(lengths)))
        for chunk in _chunks(lengths):
            # The `.bin` file lacks the `<s>` of each text.
            target.write((chunk - 1).astype("<i4").tobytes())
        start = 0
        for chunk in _chunks(lengths):
            ends = start + np.cumsum(chunk - 1, dtype=np.int64) * dtype.itemsize
            target.write(np.concatenate([[start], ends[:-1]]).astype("<i8").tobytes())
            start = ends[-1]


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(array), _CHUNK):
        yield array[start : start + _CHUNK]


def _tokenizer_file(run: Path) -> Path:
    """Return the tokenizer of a run's model or, if there is no model yet, of its vocabulary."""
    model = run / "model" / "tokenizer.json"
    candidates = [model] if model.is_file() else sorted(run.glob("vocabulary/*/tokenizer.json"))
    if len(candidates) != 1:
        raise InputError(f"{run}: {len(candidates)} vocabularies; expected the folder of a pretraining run")
    return candidates[0]
