"""Scores of text pairs, and scoring in chunks: the next chunk is tokenized while the model encodes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.model.config import ScoreScale
from simllm.model.saved_model import SIMILAR as SIMILAR
from simllm.scoring.embedding import PairScorer, PairValues, Tokenized, TooLongError
from simllm.text_cleaning import LONGEST

if TYPE_CHECKING:
    import pandas

EVEN = 0.5  # share of pairs with the same meaning on which the probabilities are calibrated
CHANGED = "meaning may have changed"
DOUBTFUL = 0.3  # if the probability of the same meaning is lower, the meaning may have changed


def meaning_may_have_changed(scores: NDArray[np.float64], same: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (n,) bool from (n,) scores and (n,) probabilities of the same meaning."""
    return (scores >= SIMILAR) & (same < DOUBTFUL)


SCALES = ("raw", "percentile", "same", "graded")
OUTPUTS = ("same", "graded")  # of the meaning head
COUNTS = ("empty", "unreadable", "truncated", "deduplicated", "divided")


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs (candidate and reference), in input order.

    Texts are cleaned before they are scored: comment marks are removed, letters become lower-case ASCII.

    Attributes:
        values: (n,) scores from -1 to 1, or from 0 to 1 with the similarity `inverse-euclidean`. Equal texts
            score 1.
        empty: Number of pairs in which at least one text is empty after cleaning. Of scores against both code
            and reference, the larger of both counts; so is `truncated`.
        unreadable: Number of texts that are empty after cleaning, but were not empty before.
        truncated: Number of texts that are longer than the model's longest input.
        deduplicated: Number of texts that were not encoded because they are equal to an earlier text.
        divided: Number of pairs that were compared clause by clause, because a text has several sentences.
        signature: Text that names everything that can change a score: `key:value` pairs joined by `|`.
        calibration: The map from scores to percentiles; None if there is none.
        same: (n,) probabilities that the two texts have the same meaning; None if the model cannot estimate
            them.
        graded: (n,) similarities from 0 to 1 as people grade them; None if the model cannot estimate them.
        warnings: What changes how the scores are read, such as the number of truncated texts.
        prior: The expected share of pairs with the same meaning, on which `same` depends.
        fits: (n,) probabilities that the candidates fit their code; None if they were not scored against
            code, or the model cannot estimate them.
        by_reference: (n,) scores against the references alone; None unless `values` are against both.
    """

    values: NDArray[np.float64]
    empty: int
    unreadable: int
    truncated: int
    deduplicated: int
    signature: str
    calibration: ScoreScale | None = field(default=None, repr=False)  # a thousand numbers
    same: NDArray[np.float64] | None = None
    graded: NDArray[np.float64] | None = None
    warnings: tuple[str, ...] = ()
    prior: float = EVEN
    fits: NDArray[np.float64] | None = None
    by_reference: NDArray[np.float64] | None = None
    divided: int = 0

    @property
    def mean(self) -> float:
        """Mean of the n scores; NaN if n is 0."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def percentiles(self) -> NDArray[np.float64]:
        """(n,) percentiles: for each pair, the percentage (0 to 100) of random pairs that score lower.

        A random pair has two different texts, chosen at random from a corpus, mostly single sentences: the
        percentiles of `divided` pairs mean nothing. InputError without calibration.
        """
        if self.calibration is None:
            raise InputError("no calibration: the model folder has none for this pooling and similarity")
        return self.calibration.percentile(self.values)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for pairs whose texts are similar but probably differ in meaning.

        This is the case if the score (against the reference) is at least 0.4 and the probability of the same
        meaning is below 0.3. All values are false if the model cannot estimate this probability.
        """
        if self.same is None:
            return np.zeros(len(self.values), bool)
        similar = self.values if self.by_reference is None else self.by_reference
        return meaning_may_have_changed(similar, self.same)

    def to_pandas(self, index: Any = None) -> pandas.Series:
        """Return the scores as a pandas Series named "score".

        Args:
            index: The index of the Series; for example, the index of the data frame with the texts.
        """
        import pandas

        return pandas.Series(self.values, index, name="score")

    def on(self, scale: str) -> NDArray[np.float64]:
        """Convert the n scores to a scale.

        Args:
            scale: `raw` for the scores themselves; `percentile` for the percentage of random pairs that score
                lower; `same` for the probability that the two texts have the same meaning; or `graded` for
                the similarity as people grade it, from 0 to 1.

        Returns:
            (n,) values on this scale.

        Raises:
            InputError: The scale is unknown, or the model cannot compute values on this scale.
        """
        if scale not in SCALES:
            raise InputError(f"scale {scale!r}: expected one of {', '.join(SCALES)}")
        if scale == "same":
            if self.same is None:
                raise InputError(
                    "no meaning head: the model folder has none, or tokens are matched one by one"
                )
            return self.same
        if scale == "graded":
            if self.graded is None:
                raise InputError("no graded similarity: the model folder has none, or tokens are matched")
            return self.graded
        return self.values if scale == "raw" else self.percentiles


def concatenate(parts: Iterable[Scores], no_scores: Scores) -> Scores:
    """Join the scores of several chunks, in order; counts, such as that of truncated texts, are added up."""
    parts = [no_scores, *parts]
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    outputs: dict[str, Any] = {
        name: None if getattr(no_scores, name) is None else np.concatenate([getattr(p, name) for p in parts])
        for name in OUTPUTS
    }
    return replace(no_scores, values=np.concatenate([part.values for part in parts]), **outputs, **counts)


def text_list(name: str, texts: Sequence[str]) -> list[str]:
    """Return an argument as a list of texts; raise TypeError if it is a lone string or has other items."""
    # A string is an iterable of strings: its characters would be scored one by one.
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected a list of texts, got a lone string; write [text]")
    # Iteration over a table gives its column names; sets have another order in each process.
    is_list = isinstance(texts, Iterable) and not isinstance(texts, bytes | Mapping | set | frozenset)
    if not is_list or hasattr(texts, "columns"):
        raise TypeError(f"{name}: expected a list of texts, got {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{index}]: expected a text, got {type(text).__name__}")
    return texts


def score_empty_texts(
    pairs: Sequence[tuple[Any, ...]],
    texts: Tokenized,
    values: PairValues,
) -> int:
    """Overwrite all (n,) values of pairs with a text that is empty after cleaning; count them.

    Such a pair gets 1 if its two texts, before cleaning, are equal up to white space; otherwise 0.
    """
    n = len(pairs)
    empty = texts.empty
    either = empty[:n] | empty[n:]
    for i in np.flatnonzero(either).tolist():
        for output in (values.scores, values.same, values.graded):
            if output is not None:
                output[i] = float(pairs[i][0].split() == pairs[i][1].split())
    return int(either.sum())


_READS = "the model reads ASCII"


def about_truncated(texts: int, truncated: int, max_length: int, on_long: str) -> list[str]:
    """Return the warning about `truncated` texts, longer than `max_length` tokens, if there are any."""
    windows = f"read in windows of {max_length} tokens, up to {LONGEST:,} characters"
    treatment = windows if on_long == "window" else f"cut at {max_length} tokens"
    return [f"{truncated} of {texts} texts {treatment}"] if truncated else []


def about_unreadable(texts: int, unreadable: int) -> list[str]:
    """Return the warning about texts that are empty after cleaning, but were not before, if there are any."""
    return [f"{unreadable} of {texts} texts are empty after cleaning ({_READS})"] if unreadable else []


def about_empty_pairs(pairs: int, empty: int, unreadable: int) -> list[str]:
    """Return the warning about pairs with a text that is empty after cleaning, if there are any.

    `unreadable` counts the texts that were not empty before cleaning.
    """
    how = f"empty after cleaning ({_READS})" if unreadable else "empty"
    scores = "they score 1 if both texts are equal, otherwise 0"
    return [f"{empty} of {pairs} pairs have a text that is {how}; {scores}"] if empty else []


def about_percentiles(scores: Scores, scale: str) -> list[str]:
    """Return the warning about percentiles of texts of several sentences, if there are any."""
    if scale != "percentile" or not scores.divided:
        return []
    why = "because random pairs are mostly of single sentences"
    return [
        f"{scores.divided} of {len(scores.values)} pairs have several sentences; "
        f"their percentiles mean nothing, {why}"
    ]


CHUNK = 1024  # pairs in a chunk of `SimLLM.stream`
Pair = TypeVar("Pair", bound=tuple[Any, ...])  # a tuple of candidate, reference, and optionally more
Item = TypeVar("Item")
Result = TypeVar("Result")


def score_in_chunks(
    pairs: Iterable[Pair],
    tokenize: Callable[[list[str]], Tokenized],
    scorer: PairScorer,
    size: int,
    no_scores: Scores,
    first: int = 1,
) -> Iterator[tuple[list[Pair], Scores]]:
    """Score pairs in chunks of `size`; yield each chunk with its scores.

    `tokenize` cleans and tokenizes a list of texts. `first` is the number of the first pair in the whole
    input, from 1; an InputError about a text that is too long names the text by this numbering.
    """
    numbered = zip(count(first, size), chunks(pairs, size), strict=False)
    for chunk, texts in prefetch_map(lambda item: _tokenize_chunk(*item, tokenize), numbered):
        yield chunk, _counted(chunk, texts, scorer(texts), no_scores)


def score_groups(
    groups: Sequence[Sequence[Pair]],
    tokenize: Callable[[list[str]], Tokenized],
    scorer: PairScorer,
    no_scores: Scores,
) -> list[Scores]:
    """Score several lists of pairs, at least one pair in each, in one run; each list has its own counts."""
    read = [_tokenize_chunk(1, list(group), tokenize)[1] for group in groups]
    values, end, scores = scorer(Tokenized.join(read)), 0, []
    for group, texts in zip(groups, read, strict=True):
        start, end = end, end + len(group)
        scores.append(_counted(group, texts, values.part(slice(start, end)), no_scores))
    return scores


def _counted(pairs: Sequence[Pair], texts: Tokenized, values: PairValues, no_scores: Scores) -> Scores:
    """Return the scores of n pairs and the counts of their texts.

    The scorer also scores pairs with an empty text, whose values are overwritten here.
    """
    empty = score_empty_texts(pairs, texts, values)
    return replace(
        no_scores,
        values=values.scores,
        same=values.same,
        graded=values.graded,
        empty=empty,
        unreadable=texts.unreadable,
        truncated=len(texts.long),
        deduplicated=texts.repeated,
        divided=len(texts.divided) // 2,
    )


def _tokenize_chunk(
    first: int, chunk: list[Pair], tokenize: Callable[[list[str]], Tokenized]
) -> tuple[list[Pair], Tokenized]:
    """Tokenize the 2n texts of a chunk; a text that is too long is named by its number among all pairs."""
    try:
        return chunk, tokenize([pair[side] for side in (0, 1) for pair in chunk])
    except TooLongError as error:
        side = "candidate" if error.index < len(chunk) else "reference"
        raise InputError(f"{side} {first + error.index % len(chunk)}: {error}") from None


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of `size` items; the last list may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def prefetch_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield `function(item)` for each item in order; a background thread is one item ahead of the caller."""
    pending: Future[Result] | None = None
    # A thread is enough, because the tokenizer and the engine release the lock of the interpreter.
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            following = thread.submit(function, item)
            if pending:
                yield pending.result()
            pending = following
        if pending:
            yield pending.result()
