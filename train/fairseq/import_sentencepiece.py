"""Conversion of a SentencePiece model to a tokenizer of simllm."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from simllm.errors import InputError
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text_cleaning import clean
from train.tokens import vocabulary

_PROBE = 50  # pieces in one text that tests the conversion


def from_sentencepiece(file: Path, symbols: Iterable[str] = ()) -> Tokenizer:
    """Convert a SentencePiece BPE model to a tokenizer of simllm.

    In the new tokenizer, the special tokens come first. The pieces (tokens) of the SentencePiece model follow
    in the same order as in that model, because the order decides how words are split. Texts are cleaned by
    the rules of simllm, not by the rules in the model.

    Args:
        file: The SentencePiece model.
        symbols: The symbols (tokens) of fairseq's vocabulary file `dict.txt`. Symbols of one character that
            are not in the SentencePiece model become tokens, too, so that their embeddings can be imported.

    Raises:
        InputError: The file is not a SentencePiece model. Or the new tokenizer would split texts differently
            from the model, because the model is a unigram model or has user-defined symbols.
    """
    if not file.is_file():
        raise InputError(f"{file}: no such file; expected a SentencePiece model")
    try:
        source = sentencepiece.SentencePieceProcessor(model_file=str(file))
    except (RuntimeError, OSError):
        raise InputError(f"{file}: not a SentencePiece model") from None
    pieces = list(SPECIAL_TOKENS)
    for i in range(source.get_piece_size()):
        if not (source.is_control(i) or source.is_unknown(i) or source.is_byte(i)):
            pieces.append(source.id_to_piece(i))
    tokenizer = _bpe(pieces)
    for start in range(len(SPECIAL_TOKENS), len(pieces), _PROBE):
        probe = clean("".join(pieces[start : start + _PROBE]).replace("\N{LOWER ONE EIGHTH BLOCK}", " "))
        ids = source.encode(probe)
        theirs = [SPECIAL_TOKENS[UNK_ID] if source.is_unknown(i) else source.id_to_piece(i) for i in ids]
        if theirs != tokenizer.backend.encode(probe).tokens[1:-1]:
            raise InputError(f"{file}: not a plain BPE model; give its tokenizer as a tokenizer.json")
    unique = set(pieces)
    return _bpe([*pieces, *(symbol for symbol in symbols if len(symbol) == 1 and symbol not in unique)])


def _bpe(pieces: list[str]) -> Tokenizer:
    backend = vocabulary.bpe(pieces)
    backend.model.fuse_unk = True  # as SentencePiece does
    return Tokenizer(backend)
