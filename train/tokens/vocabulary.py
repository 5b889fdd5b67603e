"""Learns the BPE vocabulary with SentencePiece and converts it to `tokenizer.json`."""

from __future__ import annotations

import os
import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors

from simllm.errors import InputError
from simllm.io import files
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text import normalizer

# Everything that cleaning can leave; all of it is in every vocabulary, so nothing is unknown.
_ALPHABET = "".join(c for c in map(chr, range(0x21, 0x7F)) if c not in string.ascii_uppercase)


def at(folder: Path, texts: Path, size: int) -> Tokenizer:
    """The vocabulary in `folder`, learned from a file of cleaned texts if there is none yet."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with texts.open(encoding="ascii") as lines:
            learn((line.rstrip("\n") for line in lines), size, folder / "sentencepiece.model")
        files.write(file, convert(folder / "sentencepiece.model").to_str(pretty=True))
    return Tokenizer.load(file)


def learn(texts: Iterable[str], size: int, file: Path) -> None:
    """Learn a BPE vocabulary of `size` tokens from cleaned texts; write a SentencePiece model.

    Raises InputError when the texts are too few for `size` tokens.
    """
    import sentencepiece  # here, as only this takes it

    try:
        with file.open("wb") as target:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=target,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                required_chars=_ALPHABET,
                normalization_rule_name="identity",  # the texts are clean
                remove_extra_whitespaces=False,
                bos_id=0,
                pad_id=1,
                eos_id=2,
                unk_id=UNK_ID,
                control_symbols=["<mask>"],
                num_threads=os.cpu_count() or 1,
                minloglevel=2,
            )
    except RuntimeError as error:
        file.unlink(missing_ok=True)
        reason = str(error).strip().splitlines()[-1]
        raise InputError(f"vocabulary of {size} tokens cannot be learned: {reason}") from None


def convert(file: Path) -> Backend:
    """Convert a SentencePiece BPE model that `learn` wrote into an equal `tokenizers` tokenizer."""
    import sentencepiece

    source = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return bpe([source.id_to_piece(i) for i in range(source.get_piece_size())])


def bpe(pieces: Sequence[str]) -> Backend:
    """The tokenizer that SentencePiece makes of these BPE pieces, the five special tokens first.

    SentencePiece merges the neighbours whose union has the lowest id; the same order comes
    out of ranked merges, where every way to split a piece in two is ranked by the piece.
    """
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for piece, rank in vocabulary.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                merges.append((rank, vocabulary[left], vocabulary[right], left, right))
    tokenizer = Backend(
        models.BPE(vocabulary, [(left, right) for *_, left, right in sorted(merges)], unk_token="<unk>")
    )
    tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer
