"""Export of the token shards (token ids on disk) of a pretraining run as fairseq's memory-mapped dataset.

    train.bin  train.idx    the training texts
    valid.bin  valid.idx    the held-out texts
    dict.txt                the tokens of the vocabulary, and how often they occur in the training texts

A text is written as its tokens and `</s>`, like `fairseq-preprocess` does. The `<s>` at the start of each
text in the shards is left out, because MPNet's training code for fairseq adds `<s>` before every sample. A
sample is one text or, with fairseq's option `--sample-break-mode complete`, several texts. The format is
`MMapIndexedDataset` of fairseq 0.12.2 (fairseq/data/indexed_dataset.py). It is the same in fairseq 0.8, on
which MPNet's code is based.
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


def export_dataset(run: Path, out: Path) -> None:
    """Convert the token shards (token ids on disk) of a pretraining run to a fairseq dataset.

    Args:
        run: The folder of the pretraining run.
        out: The folder to write.

    Raises:
        InputError: `run` is not the folder of a pretraining run, or its shards are damaged.
    """
    tokenizer = Tokenizer.load(_tokenizer_file(run))
    folders = {"train": run / "shards" / build.TRAIN, "valid": run / "shards" / build.TEST}
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
    """Write tokenized texts as a fairseq dataset: the token ids in `stem`.bin, the index in `stem`.idx.

    Args:
        stem: The path of both files without the suffix.
        parts: Arrays of token ids. Their concatenation has all texts, one after the other. Each text begins
            with `<s>` and ends with `</s>`.
        lengths: (N,) number of tokens of each text.
        vocab_size: Number V of tokens in the vocabulary.

    Returns:
        (V,) int64 number of occurrences of each token id; 0 for `<s>`, which is not written.

    Raises:
        InputError: A token id is too large, or `lengths` does not fit the token ids.
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
                target.write(ids[ids != _BOS].astype(dtype).tobytes())
    if not 0 < counts[_BOS] == len(lengths) or counts.sum() != lengths.sum():
        raise InputError(f"{counts[_BOS]} texts begin and {len(lengths)} have a length; damaged or empty")
    counts[_BOS] = 0
    _write_index(stem.with_suffix(".idx"), lengths, dtype)
    return counts


def _write_index(file: Path, lengths: np.ndarray, dtype: np.dtype) -> None:
    """Write the index file of a fairseq dataset.

    The index file has a header, the length of each text, and the byte offset of each text in the `.bin` file.
    A length in the index file does not count the `<s>` of the text, because the `.bin` file lacks it.

    Args:
        file: The index file to write.
        lengths: (N,) number of tokens of each text, including `<s>`.
        dtype: The type of the token ids in the `.bin` file.
    """
    with file.open("wb") as target:
        target.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[dtype.str], len(lengths)))
        for chunk in _chunks(lengths):
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
    """Return the tokenizer file in the folder of a pretraining run.

    If the run has saved a model, this is the model's tokenizer file. Otherwise, it is the tokenizer file in
    the folder `vocabulary`.
    """
    model = run / "model" / "tokenizer.json"
    candidates = [model] if model.is_file() else sorted(run.glob("vocabulary/*/tokenizer.json"))
    if len(candidates) != 1:
        raise InputError(f"{run}: {len(candidates)} vocabularies; expected the folder of a pretraining run")
    return candidates[0]
