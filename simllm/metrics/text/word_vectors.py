"""Cosine of the mean word vectors of two texts, weighted by idf (inverse document frequency).

The "words" are subword tokens, from the tokenizer of the model that comes with simllm. Their vectors are
factors of the PPMI matrix (positive pointwise mutual information) of neighbouring tokens in a corpus (see
`simllm.model.ppmi_vectors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.io import reading
from simllm.metrics.interface import UnavailableError
from simllm.metrics.text.readable_texts import TextScorer
from simllm.model import ppmi_vectors
from simllm.model.pooling import cosine
from simllm.model.saved_model import TOKENIZER, default_model
from simllm.model.tokenizer import Tokenizer

_SIZE = 256
_MOST_TEXTS = 1_000_000  # more texts change little, and take more than a minute


def load(corpus: str) -> TextScorer:
    """Load the word vector metric; scores are from -1 to 1.

    `corpus` is a file of texts: one text per line; or JSON lines (`.jsonl`, `.jsonl.gz`) with a field `text`
    or `summary`. Only the first million texts are read.
    """
    if not Path(corpus).is_file():
        raise UnavailableError(f"{corpus}: no such file; expected one text per line, or JSON lines with text")
    tokenizer = Tokenizer.load(default_model() / TOKENIZER)

    # If all scores are in the score cache, the vectors are never computed.
    @cache
    def vectors() -> NDArray[np.float64]:
        return _weighted_vectors(
            tokenizer.encode(list(islice(_texts(Path(corpus)), _MOST_TEXTS))), tokenizer.vocab_size
        )

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        sides = (tokenizer.encode(texts) for texts in (candidates, references))
        # The sum has the same direction as the mean. The boundary tokens are the same in every text.
        return cosine(*(np.stack([vectors()[ids[1:-1]].sum(axis=0) for ids in side]) for side in sides))

    def can_read(text: str) -> bool:
        return bool(vectors()[tokenizer.encode([text])[0][1:-1]].any())

    return TextScorer(score, can_read, "without tokens that the corpus distinguishes")


def data(corpus: str) -> dict[str, Path]:
    """Return the paths of the two files on which word vector scores depend: corpus and tokenizer."""
    return {"corpus": Path(corpus), "tokenizer": default_model() / TOKENIZER}


def _weighted_vectors(texts: list[list[int]], vocab_size: int) -> NDArray[np.float64]:
    """Compute (V, D) vectors of the V tokens; D is 256, or less if the corpus has few different tokens.

    The norm of a vector is the token's idf; a token that does not occur in `texts` (token ids) has zeros.
    """
    lengths = [len(ids) for ids in texts]
    tokens = np.fromiter((token for ids in texts for token in ids), np.int32, sum(lengths))
    numbers = np.repeat(np.arange(len(texts)), lengths)
    frequency = np.bincount([token for ids in texts for token in set(ids)], minlength=vocab_size)
    idf = np.log((1 + len(texts)) / (1 + frequency))
    # Tokens that do not occur would be rows of zeros in the matrix to factorize.
    seen, compact = np.unique(tokens, return_inverse=True)
    if len(seen) < 3:
        raise InputError("word-vectors: no words in the corpus")
    counts = ppmi_vectors.count_neighbours(compact, numbers, len(seen))
    # The sparse decomposition finds fewer factors than the matrix has rows.
    vectors = ppmi_vectors.ppmi_vectors(counts, min(_SIZE, len(seen) - 1))
    weighted = np.zeros((vocab_size, vectors.shape[1]))
    weighted[seen] = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12) * idf[seen, None]
    )
    return weighted


def _texts(corpus: Path) -> Iterator[str]:
    """Yield the texts in a corpus file, one from each line."""
    plain = ".jsonl" not in corpus.suffixes
    for number, line in reading.read_lines(corpus):
        if plain:
            yield line
            continue
        row = reading.parsed(line, where := f"{corpus}, line {number}")
        if not isinstance(text := row.get("text", row.get("summary")), str):
            raise InputError(f'{where}: expected a text under "text" or "summary"')
        yield text
