"""Conversion of a SentencePiece model to a tokenizer of simllm."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from simllm.errors import InputError
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text_cleaning import clean
from train.tokens import vocabulary

# Pieces in one text that tests the conversion.
_PROBE = 50


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
    # As SentencePiece does.
    backend.model.fuse_unk = True
    return Tokenizer(backend)
