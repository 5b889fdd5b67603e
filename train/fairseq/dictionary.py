"""fairseq's `dict.txt`: a `symbol count` a line; the first line has id 4.

Ids 0 to 3 are `<s> <pad> </s> <unk>` and stand in no file. MPNet's task adds `<mask>` behind the
last line where the file has none, so a file whose first line is `<mask>` has our ids.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io import files
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer

_IMPLIED, _MASK = SPECIAL_TOKENS[:4], SPECIAL_TOKENS[4]


def write(file: Path, tokenizer: Tokenizer, counts: np.ndarray) -> None:
    """Write the tokenizer's tokens with their (vocab_size,) counts, in the order of their ids."""
    tokens = (tokenizer.backend.id_to_token(i) for i in range(len(_IMPLIED), tokenizer.vocab_size))
    with file.open("w", encoding="utf-8", newline="\n") as target:
        for token, count in zip(tokens, counts[len(_IMPLIED) :], strict=True):
            target.write(f"{token} {count}\n")


def read(file: Path) -> dict[str, int]:
    """Id of every symbol of an MPNet model, `<mask>` included; raise InputError that names the line."""
    ids = {symbol: i for i, symbol in enumerate(_IMPLIED)}
    for number, line in files.lines(file):
        symbol, _, count = line.rstrip().rpartition(" ")
        if not symbol or not count.isdecimal():
            raise InputError(f"{file}, line {number}: expected a symbol and its count")
        if symbol in ids:
            raise InputError(f"{file}, line {number}: {symbol} is in the dictionary already")
        ids[symbol] = len(ids)
    if len(ids) == len(_IMPLIED):
        raise InputError(f"{file}: empty; expected a symbol and its count a line")
    ids.setdefault(_MASK, len(ids))
    return ids
