"""From texts to the scores of pairs: token ids, embeddings, and the scorers that compare them.

A text is *long* if it has more tokens than the encoder can read at once, or more than 10,000 characters. It
is cut off, refused, or divided into windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats, Floats32
from simllm.errors import InputError
from simllm.model.config import HeadConfig, cosine
from simllm.model.saved_model import MeaningInfo, SavedModel, shift_prior
from simllm.model.tokenizer import Tokenizer
from simllm.scoring.sentences import Comparison, DividedText, compare, divide_pairs
from simllm.text_cleaning import LONGEST, SEVERAL_SENTENCES

Ids = tuple[int, ...]  # one input of the encoder, <s> and </s> included
Windows = list[Ids]  # the windows of one text; usually one window with the whole text
Reduced = TypeVar("Reduced")

ON_LONG = ("truncate", "window", "error")
_EMPTY = 2  # tokens of an empty text: <s> and </s>

# Called between batches; it may end the scoring by an error, as a server does if nobody waits any more.
between_batches: ContextVar[Callable[[], None]] = ContextVar("between_batches", default=lambda: None)


@dataclass(frozen=True)
class Tokenized:
    """The token ids of n texts.

    Attributes:
        inputs: For each text, its windows; for a divided text, the windows of its clauses, one after another.
        long: Indices of the long texts.
        unreadable: Number of texts that are empty after cleaning, but were not empty before.
        divided: The divided texts, by index; in a pair, both texts are divided or none.
    """

    inputs: list[Windows]
    long: list[int] = field(default_factory=list)
    unreadable: int = 0
    divided: Mapping[int, DividedText] = field(default_factory=dict)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool for the n texts, true for a text that is empty after cleaning."""
        return np.array([len(windows[0]) == _EMPTY for windows in self.inputs], bool)

    @property
    def repeated(self) -> int:
        """Number of texts that have the same token ids as an earlier text in the list."""
        return len(self.inputs) - len({tuple(windows) for windows in self.inputs})

    def of_pairs(self, pairs: Sequence[int]) -> Tokenized:
        """Return the texts of some of n pairs: their candidates, then their references."""
        indices = [*pairs, *(len(self.inputs) // 2 + i for i in pairs)]
        kept = enumerate(indices) if self.divided else ()
        divided = {k: self.divided[i] for k, i in kept if i in self.divided}
        return Tokenized([self.inputs[i] for i in indices], divided=divided)

    @classmethod
    def join(cls, parts: Sequence[Tokenized]) -> Tokenized:
        """Join the texts of several lists of pairs: all candidates, then all references."""
        if len(parts) == 1:
            return parts[0]
        inputs: list[Windows] = []
        divided: dict[int, DividedText] = {}
        for side in (0, 1):
            for part in parts:
                n = len(part.inputs) // 2
                own = range(side * n, (side + 1) * n)
                start = len(inputs) - own.start
                divided |= {start + i: part.divided[i] for i in own if i in part.divided}
                inputs += part.inputs[own.start : own.stop]
        return cls(inputs, divided=divided)

    def clauses(self, index: int) -> list[Windows]:
        """Return the windows of each clause of a divided text."""
        windows = iter(self.inputs[index])
        return [list(islice(windows, count)) for count in self.divided[index].windows]


class TooLongError(InputError):
    """Error for a long text if the user does not allow long texts; `index` is its position in the list."""

    def __init__(self, index: int, length: str) -> None:
        super().__init__(length)
        self.index = index


def tokenize(tokenizer: Tokenizer, texts: Sequence[str], longest: int, on_long: str) -> Tokenized:
    """Clean and tokenize n texts of at most `longest` tokens.

    `on_long` tells what happens to a long text: `truncate` cuts it, `window` splits it into windows, and
    `error` raises TooLongError. Only the first 10,000 characters of a text are read.
    """
    whole = tokenizer.encode(texts)
    long = [
        i
        for i, (text, ids) in enumerate(zip(texts, whole, strict=True))
        if len(ids) > longest or len(text) > LONGEST
    ]
    if long and on_long == "error":
        text, ids = texts[long[0]], whole[long[0]]
        if len(ids) > longest:
            raise TooLongError(long[0], f"{len(ids)} tokens, more than the model's {longest}")
        raise TooLongError(long[0], f"{len(text)} characters, more than {LONGEST}")
    inputs = [[tuple(ids)] for ids in whole]
    for i in long:
        inputs[i] = _windows(whole[i], longest)[: None if on_long == "window" else 1]
    left_empty = (text for text, ids in zip(texts, whole, strict=True) if len(ids) == _EMPTY)
    return Tokenized(inputs, long, sum(bool(text.strip()) for text in left_empty))


def _windows(ids: list[int], longest: int) -> list[Ids]:
    """Split token ids into windows of at most `longest` tokens, each with the <s> and </s> of the text."""
    # `or 1` below gives a text without tokens one window, <s> and </s>.
    first, *body, last = ids
    size = longest - 2
    return [(first, *body[start : start + size], last) for start in range(0, len(body) or 1, size)]


def tokenize_pairs(tokenizer: Tokenizer, longest: int, on_long: str, texts: Sequence[str]) -> Tokenized:
    """Tokenize n candidates and then n references, as `tokenize` does; divide pairs with several sentences.

    A divided text is long only if one of its clauses is long, or if it has more than 10,000 characters.
    """
    clauses = divide_pairs(texts) if any(map(SEVERAL_SENTENCES.search, texts)) else {}
    if not clauses:
        return tokenize(tokenizer, texts, longest, on_long)
    pieces = [clauses[i].texts if i in clauses else (text,) for i, text in enumerate(texts)]
    owners = [i for i, own in enumerate(pieces) for _ in own]
    cut = {i for i in clauses if len(texts[i]) > LONGEST}
    if cut and on_long == "error":
        raise TooLongError(min(cut), f"{len(texts[min(cut)])} characters, more than {LONGEST}")
    try:
        read = tokenize(tokenizer, [piece for own in pieces for piece in own], longest, on_long)
    except TooLongError as error:
        raise TooLongError(owners[error.index], str(error)) from None
    rest = iter(read.inputs)
    inputs, divided = [], {}
    for i, own in enumerate(pieces):
        windows = [next(rest) for _ in own]
        # A clause without a readable character compares to nothing.
        readable = [
            k for k, ((first, *_), _) in enumerate(zip(windows, own, strict=True)) if len(first) > _EMPTY
        ]
        kept = readable or [0]
        if i in clauses:
            divided[i] = clauses[i].choose(kept, [len(windows[k]) for k in kept])
        inputs.append([ids for k in kept for ids in windows[k]])
    left_empty = (text for text, windows in zip(texts, inputs, strict=True) if len(windows[0]) == _EMPTY)
    long = sorted({owners[k] for k in read.long} | cut)
    return Tokenized(inputs, long, sum(bool(text.strip()) for text in left_empty), divided)


# A text's (tokens, W) vectors, which the meaning head reads: an array, or a tensor on the engine's device.
TokenVectors = Any


class EncodedTexts(Protocol):
    """The hidden states of B texts, which an engine has computed."""

    def pooled(self, pooling: str) -> Floats32:
        """Pool the states into (B, D) embeddings; `pooling` is one of `config.POOLINGS`."""
        ...

    def states(self) -> list[Floats32]:
        """Return each text's (tokens, D) states."""
        ...

    def projected(self) -> list[TokenVectors]:
        """Return each text's vectors for the meaning head."""
        ...


class Engine(Protocol):
    """The networks of a model, ready for scoring.

    Attributes:
        mode: The mode in which it computes, such as `exact`.
        batch_tokens: Largest number of tokens in a batch, padding included.
        head: Shape of the meaning head; None if it is not used.
        device: The device that computes, such as "cpu".
        threads: Number of threads that compute on a CPU.
        signature: What can change a score, for the signature of the metric.
    """

    mode: str

    @property
    def signature(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def batch_tokens(self) -> int: ...  # noqa: D102

    @property
    def head(self) -> HeadConfig | None: ...  # noqa: D102

    @property
    def device(self) -> Any: ...  # noqa: D102

    @property
    def threads(self) -> int: ...  # noqa: D102

    def encode(self, texts: Sequence[Ids]) -> EncodedTexts:
        """Encode the token ids of B texts."""
        ...

    def beside(self, other: SavedModel) -> tuple[Engine, Engine]:
        """Return an engine of another model with a meaning head, and this engine with that head."""
        ...

    def logits(
        self,
        first: Sequence[list[TokenVectors]],
        second: Sequence[list[TokenVectors]],
        cosines: Floats,
    ) -> Floats:
        """Run the meaning head on the vectors of n pairs of texts, window by window: (n, 1 or 2) logits."""
        ...


def embed(engine: Engine, texts: Tokenized, pooling: str) -> Floats32:
    """Compute the (n, D) float32 embeddings of n texts, at least one."""
    pooled = run_encoder(engine, texts, lambda encoded: encoded.pooled(pooling))
    return stack_means(pooled, texts.inputs)


def stack_means(embeddings: Mapping[Ids, Floats32], texts: Sequence[Windows]) -> Floats32:
    """Compute the (n, D) embeddings of n texts, at least one, from those of their windows."""
    rows = [mean_of_windows(embeddings, windows) for windows in texts]
    return np.concatenate(rows).reshape(len(rows), -1)  # for many texts, `np.stack` takes twice as long


def mean_of_windows(embeddings: Mapping[Ids, Floats32], windows: Windows) -> Floats32:
    """Compute the (D,) embedding of a text: the mean of its windows, weighted by their numbers of tokens."""
    if len(windows) == 1:
        return embeddings[windows[0]]
    # <s> and </s> stand in every window and do not count.
    weights = [len(ids) - 2 for ids in windows]
    return np.average([embeddings[ids] for ids in windows], axis=0, weights=weights).astype(np.float32)


def batch_slices(sorted_ids: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[slice]:
    """Split texts that are sorted by length, shortest first, into batches of at most `batch_tokens` tokens.

    Padding counts. A text with more tokens than that is alone in its batch.
    """
    start = 0
    for end, tokens in enumerate(sorted_ids):  # `tokens` is the longest so far
        if end > start and (end + 1 - start) * len(tokens) > batch_tokens:
            yield slice(start, end)
            start = end
    if sorted_ids:
        yield slice(start, len(sorted_ids))


def run_encoder(
    engine: Engine, texts: Tokenized, reduce: Callable[[EncodedTexts], Iterable[Reduced]]
) -> dict[Ids, Reduced]:
    """Run the encoder on the windows of texts, and compute one result for each window.

    `reduce` computes the results of a batch.
    """
    # Equal windows are encoded only once. Sorting by length saves padding; sorting by token ids makes the
    # batches, and so the rounding errors, independent of the order of the texts.
    unique = sorted({ids for windows in texts.inputs for ids in windows})
    unique.sort(key=len)  # keeps the order by token ids
    reduced: dict[Ids, Reduced] = {}
    for rows in batch_slices(unique, engine.batch_tokens):
        between_batches.get()()
        reduced.update(zip(unique[rows], reduce(engine.encode(unique[rows])), strict=True))
    return reduced


_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


def split_pairs(
    candidates: list[Windows], references: list[Windows], batch_tokens: int = 0
) -> Iterator[list[int]]:
    """Split n pairs, given as the windows of their texts, into groups of at most 16,384 tokens, or one batch.

    Each group is a list of indices. A pair with more tokens is a group of its own.
    """
    sizes = [sum(map(len, (*a, *b))) for a, b in zip(candidates, references, strict=True)]
    part: list[int] = []
    # A GPU is faster with large batches, and has room for their states.
    space = largest = max(_TOKENS, batch_tokens)
    # Pairs with equal references become neighbours, and usually share a group, which encodes the reference
    # once.
    for i in sorted(range(len(sizes)), key=lambda i: (sum(map(len, references[i])), references[i])):
        if part and sizes[i] > space:
            yield part
            part, space = [], largest
        part.append(i)
        space -= sizes[i]
    if part:
        yield part


class PairValues(NamedTuple):
    """The results of a scorer for n pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the two texts have the same meaning; None if the model has no head.
        graded: (n,) similarities as people grade them, from 0 to 1; None if the model has no graded output.
        comparisons: The comparisons of the divided texts, by the index of their pair.
    """

    scores: Floats
    same: Floats | None = None
    graded: Floats | None = None
    comparisons: Mapping[int, Comparison] = {}

    def part(self, rows: slice) -> PairValues:
        """Return views of the values of some pairs, without their comparisons."""
        same, graded = (None if values is None else values[rows] for values in (self.same, self.graded))
        return PairValues(self.scores[rows], same, graded)


# A function that takes 2n tokenized texts: first the n candidates, then their n references.
PairScorer = Callable[[Tokenized], PairValues]
Similarity = Callable[[NDArray[np.floating], NDArray[np.floating]], Floats]


def compare_embeddings(
    texts: Tokenized, embeddings: Mapping[Ids, Floats32], similarity: Similarity
) -> tuple[Floats, dict[int, Comparison]]:
    """Score n pairs by the embeddings of their windows: the (n,) scores, and comparisons of divided texts."""
    n = len(texts.inputs) // 2
    scores, comparisons = np.zeros(n), {}
    whole = [i for i in range(n) if i not in texts.divided]
    if whole:
        first, second = ([texts.inputs[start + i] for i in whole] for start in (0, n))
        scores[whole] = similarity(stack_means(embeddings, first), stack_means(embeddings, second))
    for i in range(n):
        if i in texts.divided:
            between_batches.get()()
            a, b = (stack_means(embeddings, texts.clauses(k)) for k in (i, n + i))
            # One row at a time: a copy of both embeddings for each two clauses would take much memory.
            similar = np.stack([similarity(np.tile(row, (len(b), 1)), b) for row in a])
            comparisons[i] = compare(similar, texts.divided[i], texts.divided[n + i])
            scores[i] = comparisons[i].score
    return scores, comparisons


@dataclass(frozen=True)
class EmbeddingScorer:
    """Scorer that compares the embeddings of the two texts in each pair.

    Attributes:
        similarity: Compares two (n, D) arrays of embeddings, and returns (n,) similarities.
    """

    engine: Engine
    pooling: str
    similarity: Similarity

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs; this scorer cannot estimate the probability of the same meaning."""
        rows = run_encoder(self.engine, texts, lambda encoded: encoded.pooled(self.pooling))
        scores, comparisons = compare_embeddings(texts, rows, self.similarity)
        return PairValues(scores, comparisons=comparisons)


# What the meaning head reads: a pair, a clause of its candidate, a clause of its reference.
Key = tuple[int, int, int]


@dataclass(frozen=True)
class MeaningScorer:
    """Scorer that computes embeddings and the inputs of the meaning head in one run of the encoder.

    Attributes:
        engine: An engine with a meaning head.
        similarity: Compares two (n, D) arrays of embeddings, and returns (n,) similarities.
        head_pooling: The pooling of the embeddings whose cosines the head knows.
        info: Turns the head's logits into calibrated probabilities.
        prior: The expected share of pairs with the same meaning.
    """

    engine: Engine
    pooling: str
    similarity: Similarity
    head_pooling: str
    info: MeaningInfo
    prior: float

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs by similarity, probability of the same meaning and perhaps graded similarity."""
        n = len(texts.inputs) // 2
        graded_too = is_graded(self.engine)
        scores, same, graded = np.zeros(n), np.zeros(n), np.zeros(n)
        comparisons: dict[int, Comparison] = {}
        for pairs in split_pairs(texts.inputs[:n], texts.inputs[n:], self.engine.batch_tokens):
            part = texts.of_pairs(pairs)
            read = run_encoder(self.engine, part, self._reduce)
            embeddings = {ids: row for ids, (row, _, _) in read.items()}
            scores[pairs], compared = compare_embeddings(part, embeddings, self.similarity)
            found = self._read(part, read, compared)
            same[pairs], compared = _combine(found[0], len(pairs), compared)
            if graded_too:
                graded[pairs], _ = _combine(found[1], len(pairs), compared)
            comparisons.update((pairs[k], comparison) for k, comparison in compared.items())
        return PairValues(scores, same, graded if graded_too else None, comparisons)

    def _read(
        self,
        texts: Tokenized,
        read: Mapping[Ids, tuple[Floats32, Floats32, TokenVectors]],
        comparisons: Mapping[int, Comparison],
    ) -> list[dict[Key, float]]:
        """Run the head on n pairs, or on the matched clauses of divided texts: its outputs by their keys.

        The first output is the probability of the same meaning; the second, if there is one, is the grade.
        """
        n = len(texts.inputs) // 2
        keys: list[Key] = []
        sides: tuple[list[Windows], list[Windows]] = [], []
        for k in range(n):
            first = texts.clauses(k) if k in comparisons else [texts.inputs[k]]
            second = texts.clauses(n + k) if k in comparisons else [texts.inputs[n + k]]
            for i, j in sorted(comparisons[k].matched_pairs) if k in comparisons else [(0, 0)]:
                # Equal texts have the value 1: the head never sees them.
                if first[i] != second[j]:
                    keys.append((k, i, j))
                    sides[0].append(first[i])
                    sides[1].append(second[j])
        if not keys:
            return [{}, {}]
        own = {ids: row for ids, (_, row, _) in read.items()}
        a, b = (stack_means(own, side) for side in sides)
        cosines = cosine(a, b)
        # The head reads a long text at once, all windows together, while the encoder cannot.
        joined = [[[read[ids][2] for ids in windows] for windows in side] for side in sides]
        logits = run_head(self.engine, joined[0], joined[1], cosines)
        outputs = [shift_prior(self.info.probabilities(logits[:, 0], cosines), self.prior)]
        outputs += [np.exp(-np.logaddexp(0.0, -column)) for column in logits.T[1:]]
        return [dict(zip(keys, output.tolist(), strict=True)) for output in outputs]

    def _reduce(self, encoded: EncodedTexts) -> Iterable[tuple[Floats32, Floats32, TokenVectors]]:
        """Compute each text's (D,) embedding, the one that the head knows, and its vectors for the head."""
        embeddings = own = encoded.pooled(self.pooling)
        if self.pooling != self.head_pooling:
            own = encoded.pooled(self.head_pooling)
        return zip(embeddings, own, encoded.projected(), strict=True)


def run_head(
    engine: Engine,
    first: Sequence[list[TokenVectors]],
    second: Sequence[list[TokenVectors]],
    cosines: Floats,
) -> Floats:
    """Run the meaning head on the vectors of n pairs of texts, window by window: its (n, 1 or 2) logits."""
    sizes = [max(sum(map(len, a)), sum(map(len, b))) for a, b in zip(first, second, strict=True)]
    # Neighbours of similar length need little padding.
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    logits = np.zeros((len(sizes), 1 + is_graded(engine)))
    for rows in batch_slices([range(sizes[i]) for i in order], engine.batch_tokens):
        between_batches.get()()
        chosen = order[rows]
        a, b = ([side[i] for i in chosen] for side in (first, second))
        logits[chosen] = engine.logits(a, b, cosines[chosen])
    return logits


def is_graded(engine: Engine) -> bool:
    """Return whether the meaning head has a graded output."""
    return engine.head is not None and engine.head.graded


def _combine(
    found: Mapping[Key, float], n: int, comparisons: Mapping[int, Comparison]
) -> tuple[Floats, dict[int, Comparison]]:
    """Combine an output of the head for n pairs, and put that of clauses into their comparisons.

    The value of divided texts is the mean over clauses and their matches, weighted by words; of the means of
    both texts, it is the harmonic mean.
    """
    values = np.array([found.get((k, 0, 0), 1.0) for k in range(n)])
    compared = {}
    for k, comparison in comparisons.items():
        of_candidate, of_reference = comparison.matches
        of_clauses = (
            np.array([found.get((k, i, j), 1.0) for i, j in enumerate(of_candidate.tolist())]),
            np.array([found.get((k, i, j), 1.0) for j, i in enumerate(of_reference.tolist())]),
        )
        compared[k] = comparison._replace(same=of_clauses)
        values[k] = compared[k].mean_same
    return values, compared
