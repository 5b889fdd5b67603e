"""fairseq's vocabulary file `dict.txt`, with a symbol and its count on each line.

The symbol on the first line has id 4. The ids 0 to 3 are `<s> <pad> </s> <unk>`, which are not in the file.

In the files that simllm writes, `<mask>` is on the first line, and has id 4 as in simllm's tokenizers. Each
token then has the same id in fairseq as in simllm. If a file has no `<mask>`, MPNet's training code for
fairseq adds `<mask>` as the last symbol, with the largest id.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import sentencepiece

from simllm.errors import InputError
from simllm.io import reading
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text_cleaning import clean
from train.tokens import vocabulary

_IMPLIED, _MASK = SPECIAL_TOKENS[:4], SPECIAL_TOKENS[4]


def write_dictionary(file: Path, tokenizer: Tokenizer, counts: np.ndarray) -> None:
    """Write the vocabulary of a tokenizer as a `dict.txt`; `counts` is (V,), the occurrences of each token
    id.
    """
    # fairseq adds the first four tokens itself.
    tokens = (tokenizer.backend.id_to_token(i) for i in range(len(_IMPLIED), tokenizer.vocab_size))
    with file.open("w", encoding="utf-8", newline="\n") as target:
        for token, count in zip(tokens, counts[len(_IMPLIED) :], strict=True):
            target.write(f"{token} {count}\n")


def read_dictionary(file: Path) -> dict[str, int]:
    """Read the ids of the symbols of a `dict.txt`, and of `<mask>` even if it is not in the file."""
    ids = {symbol: i for i, symbol in enumerate(_IMPLIED)}
    for number, line in reading.read_lines(file):
        symbol, _, count = line.rstrip().rpartition(" ")
        if not symbol or not count.isdecimal():
            raise InputError(f"{file}, line {number}: expected a symbol and its count")
        if symbol in ids:
            raise InputError(f"{file}, line {number}: {symbol} is in the dictionary already")
        ids[symbol] = len(ids)
    if len(ids) == len(_IMPLIED):
        raise InputError(f"{file}: empty; expected a symbol and its count per line")
    ids.setdefault(_MASK, len(ids))
    return ids


_PROBE = 50  # pieces in one text that tests the conversion


def from_sentencepiece(file: Path, symbols: Iterable[str] = ()) -> Tokenizer:
    """Convert a SentencePiece BPE model to a tokenizer, with simllm's special tokens and text cleaning.

    Symbols of one character that the model lacks become tokens, so that their embeddings can be imported.
    Raises InputError for other models, which would split texts differently.
    """
    if not file.is_file():
        raise InputError(f"{file}: no such file; expected a SentencePiece model")
    try:
        source = sentencepiece.SentencePieceProcessor(model_file=str(file))
    except (RuntimeError, OSError):
        raise InputError(f"{file}: not a SentencePiece model") from None
    # The pieces keep their order, which decides how words are split.
    pieces = list(SPECIAL_TOKENS)
    for i in range(source.get_piece_size()):
        if not (source.is_control(i) or source.is_unknown(i) or source.is_byte(i)):
            pieces.append(source.id_to_piece(i))
    tokenizer = _bpe(pieces)
    for start in range(len(SPECIAL_TOKENS), len(pieces), _PROBE):
        probe = clean("".join(pieces[start : start + _PROBE]).replace("\N{LOWER ONE EIGHTH BLOCK}", " "))
        ids = source.encode(probe)
        theirs = [SPECIAL_TOKENS[UNK_ID] if source.is_unknown(i) else source.id_to_piece(i) for i in ids]
        # A unigram model, or one with user-defined symbols, splits the probe differently.
        if theirs != tokenizer.backend.encode(probe).tokens[1:-1]:
            raise InputError(f"{file}: not a plain BPE model; give its tokenizer as a tokenizer.json")
    unique = set(pieces)
    return _bpe([*pieces, *(symbol for symbol in symbols if len(symbol) == 1 and symbol not in unique)])


def _bpe(pieces: list[str]) -> Tokenizer:
    backend = vocabulary.bpe(pieces)
    backend.model.fuse_unk = True  # as SentencePiece does
    return Tokenizer(backend)
