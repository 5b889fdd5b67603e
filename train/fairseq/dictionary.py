"""fairseq's vocabulary file `dict.txt`, with a symbol and its count on each line.

The symbol on the first line has id 4. The ids 0 to 3 are `<s> <pad> </s> <unk>`, which are not in the file.

In the files that simllm writes, `<mask>` is on the first line, and has id 4 as in simllm's tokenizers. Each
token then has the same id in fairseq as in simllm. If a file has no `<mask>`, MPNet's training code for
fairseq adds `<mask>` as the last symbol, with the largest id.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io import read_lines
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer

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
    for number, line in read_lines.lines(file):
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
