"""Find pairs of comments in a corpus that share many words, whether or not they have the same meaning.

    python -m train.contrastive.lexical_neighbours runs/repositories/train.txt runs/neighbours.jsonl

A text is paired with one of the ten texts whose words are most similar. The output is JSON lines with the
texts `a` and `b`.

With these pairs, configs/meaning.yaml trains the encoder to give texts with shared words similar embeddings.
This is useful because two summaries of the same code usually share some words. The training does not assume
that the two texts of a pair have the same meaning.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from simllm.errors import InputError
from simllm.io import output_file, reading
from simllm.model.tokenizer import SPECIAL_TOKENS
from simllm.text_cleaning import clean
from train.runtime.command import make_parser, run_command

_NEAREST = 10  # neighbours to choose from
_CHUNK = 256  # texts that are compared with all other texts at once; bounds the memory
_SEED = 1


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.contrastive.lexical_neighbours", __doc__)
    parser.add_argument("corpus", type=Path, help="texts, one per line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    parser.add_argument("--pairs", type=int, default=20_000, help="largest number (default: %(default)s)")
    return run_command(parser, _write, overwrite=True)


def _write(corpus: Path, out: Path, pairs: int, overwrite: bool) -> None:
    output_file.check_output(out, overwrite, [corpus])
    if pairs < 0:
        raise InputError(f"--pairs {pairs}: expected a whole number from 0")
    cleaned = (clean(line) for _, line in reading.read_lines(corpus))
    texts = list(dict.fromkeys(text for text in cleaned if text))
    if len(texts) < 2:
        raise InputError(f"{corpus}: expected two or more different texts")
    rows = [{"a": first, "b": second} for first, second in neighbour_pairs(texts, pairs)]
    if pairs and not rows:
        raise InputError(f"{corpus}: no two texts share a word")
    output_file.write(out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows):,} pairs in {out}", file=sys.stderr)


def neighbour_pairs(texts: Sequence[str], count: int) -> Iterator[tuple[str, str]]:
    """Choose `count` texts at random, and pair each with one of the ten texts that are most similar to it.

    A text that shares no word with another text gives no pair. `texts` has no repetitions.
    """
    numbers: dict[str, int] = {}
    bags = [[numbers.setdefault(word, len(numbers)) for word in text.split()] for text in texts]
    teacher = LexicalTeacher(bags, len(numbers), special_tokens=0)
    vectors = teacher.unit_vectors(bags)
    random = np.random.default_rng(_SEED)
    chosen = random.permutation(len(texts))[:count]
    for start in range(0, len(chosen), _CHUNK):
        rows = chosen[start : start + _CHUNK]
        cosines = (vectors[rows] @ vectors.T).toarray()
        # A text is not its own neighbour.
        cosines[np.arange(len(rows)), rows] = 0
        for row, similar in zip(rows, cosines, strict=True):
            most = min(_NEAREST, len(similar))
            nearest = np.argpartition(similar, len(similar) - most)[-most:]
            nearest = nearest[similar[nearest] > 0]
            if len(nearest):
                yield texts[row], texts[random.choice(nearest)]


class LexicalTeacher:
    """Text similarity by shared tokens: cosines between bags of tokens.

    A small encoder confuses words that occur in similar contexts. The teacher does not, because it compares
    only the tokens themselves. The encoder learns from the teacher which texts in a batch are similar, as in
    similarity-preserving distillation (Tung and Mori, 2019). Afterwards, the encoder agrees better with human
    ratings than the teacher, and better than an encoder that was trained without the teacher.

    A bag is a vector over the vocabulary: sqrt(idf) for tokens in the text, 0 for other and for special
    tokens. The idf (inverse document frequency) is computed from the `texts` of the constructor.
    """

    def __init__(
        self, texts: Sequence[Sequence[int]], vocab_size: int, special_tokens: int = len(SPECIAL_TOKENS)
    ) -> None:
        counts = np.bincount(np.concatenate([np.unique(ids) for ids in texts]), minlength=vocab_size)
        # 1e-3 keeps a token that all texts have above 0, so that no text of ordinary tokens has an empty bag.
        self.weights = np.sqrt(np.log((1 + len(texts)) / (1 + counts)) + 1e-3)
        self.weights[:special_tokens] = 0  # they have the first ids

    def cosines(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Compute the (N, N) float32 cosines, from 0 to 1, between the bags of N texts."""
        bags = self.unit_vectors(texts)
        return (bags @ bags.T).toarray().astype(np.float32)

    def unit_vectors(self, texts: Sequence[Sequence[int]]) -> sparse.csr_matrix:
        """Compute the (N, vocab_size) bags of N texts, scaled to length 1; a text of special tokens has a row
        of zeros.
        """
        tokens = [np.unique(ids) for ids in texts]
        rows = np.repeat(np.arange(len(texts)), [len(ids) for ids in tokens])
        columns = np.concatenate(tokens)
        bags = sparse.csr_matrix(
            (self.weights[columns], (rows, columns)), shape=(len(texts), len(self.weights))
        )
        lengths = np.sqrt(np.asarray(bags.multiply(bags).sum(axis=1)).ravel()).clip(min=1e-9)
        return sparse.csr_matrix(sparse.diags(1 / lengths) @ bags)


if __name__ == "__main__":
    sys.exit(main())
