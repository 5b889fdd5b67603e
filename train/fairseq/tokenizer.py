"""The tokenizer of a fairseq user's SentencePiece model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from simllm.errors import InputError
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text import clean
from train.tokens import vocabulary

_AT_ONCE = 50  # pieces a probe


def from_sentencepiece(file: Path, symbols: Iterable[str] = ()) -> Tokenizer:
    """Renumber the pieces behind the special tokens; their order, which BPE merges by, stays.

    A character that the model does not know is still a symbol to fairseq where `symbols`, those
    of a `dict.txt`, have it: it becomes a piece, too. Texts are cleaned as ours are before they
    are split, whatever the model's own rules say. Raises InputError for a model that splits a
    text made of its own pieces otherwise than its pieces merged in this order do: a unigram
    model, or one with symbols of the user's.
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
    for start in range(len(SPECIAL_TOKENS), len(pieces), _AT_ONCE):
        probe = clean("".join(pieces[start : start + _AT_ONCE]).replace("\N{LOWER ONE EIGHTH BLOCK}", " "))
        ids = source.encode(probe)
        theirs = [SPECIAL_TOKENS[UNK_ID] if source.is_unknown(i) else source.id_to_piece(i) for i in ids]
        if theirs != tokenizer.backend.encode(probe).tokens[1:-1]:
            raise InputError(f"{file}: not a plain BPE model; give its tokenizer as a tokenizer.json")
    known = set(pieces)
    return _bpe([*pieces, *(symbol for symbol in symbols if len(symbol) == 1 and symbol not in known)])


def _bpe(pieces: list[str]) -> Tokenizer:
    backend = vocabulary.bpe(pieces)
    backend.model.fuse_unk = True  # as SentencePiece does
    return Tokenizer(backend)
