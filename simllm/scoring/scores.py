"""The rule that marks two similar texts as "meaning may have changed", if they probably differ in meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import simllm
from simllm.errors import InputError
from simllm.io import tables
from simllm.io.text_pairs import PairWithId, shown_id
from simllm.model.engines import MODES
from simllm.model.saved_model import SavedModel
from simllm.model.scale import ScoreScale
from simllm.scoring.frequencies import Frequencies
from simllm.scoring.token_matching import TOKEN_SIMILARITIES

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from numpy.typing import NDArray

CHANGED = "meaning may have changed"
SIMILAR = 0.4  # lowest score of similar texts
DOUBTFUL = 0.3  # if the probability of the same meaning is lower, the meaning may have changed


def meaning_may_have_changed(scores: NDArray[np.float64], same: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (n,) bool from (n,) scores and (n,) probabilities of the same meaning."""
    return (scores >= SIMILAR) & (same < DOUBTFUL)


def score_signature(
    model: SavedModel,
    pooling: str,
    similarity: str,
    mode: str,
    on_long: str,
    with_head: bool,
    frequencies: Frequencies | None,
) -> str:
    """Build the signature: `key:value` pairs joined by `|`, such as "similarity:cosine|dtype:float32".

    `frequencies` is None if they are counted in the references of the scored pairs.
    """
    # Similarities that match tokens use neither pooling nor meaning head; the others use no frequencies.
    by_token = similarity in TOKEN_SIMILARITIES
    parts = {
        "model": model.hash,
        "tokenizer": model.tokenizer.hash,
        "pooling": "none" if by_token else pooling,
        "similarity": similarity,
        "dtype": str(MODES[mode]).removeprefix("torch."),
        "max_length": model.encoder.config.max_length,
    }
    if with_head and not by_token:
        parts["head"] = model.head_hash
    if by_token:
        parts["frequencies"] = frequencies.hash if frequencies else "references"
    # "truncate" and "error" give equal scores wherever they give scores.
    if on_long == "window":
        parts["long"] = "window"
    parts["version"] = simllm.__version__
    return "|".join(f"{key}:{value}" for key, value in parts.items())


SCALES = ("raw", "percentile", "rating", "same")
COUNTS = ("empty", "unreadable", "truncated", "deduplicated")


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs (candidate and reference), in input order.

    Texts are cleaned before they are scored: comment marks are removed, letters become lower-case ASCII.

    Attributes:
        values: (n,) scores from -1 to 1, or from 0 to 1 with the similarity `inverse-euclidean`. Equal texts
            score 1.
        empty: Number of pairs in which at least one text is empty after cleaning.
        unreadable: Number of texts that are empty after cleaning, but were not empty before.
        truncated: Number of texts that are longer than the model's longest input.
        deduplicated: Number of texts that were not encoded because they are equal to an earlier text.
        signature: Text that names everything that can change a score: `key:value` pairs joined by `|`.
        calibration: The map from scores to percentiles and human ratings; None if there is none.
        same: (n,) probabilities that the two texts have the same meaning; None if the model cannot estimate
            them.
        warnings: What changes how the scores are read, such as the number of truncated texts.
    """

    values: NDArray[np.float64]
    empty: int
    unreadable: int
    truncated: int
    deduplicated: int
    signature: str
    calibration: ScoreScale | None = field(default=None, repr=False)  # a thousand numbers
    same: NDArray[np.float64] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """Mean of the n scores; NaN if n is 0."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def percentiles(self) -> NDArray[np.float64]:
        """(n,) percentiles: for each pair, the percentage (0 to 100) of random pairs that score lower.

        A random pair has two different texts, chosen at random from a corpus. InputError without calibration.
        """
        return self._calibrated().percentile(self.values)

    @property
    def ratings(self) -> NDArray[np.float64]:
        """(n,) expected human ratings, predicted from the scores; InputError without calibration."""
        return self._calibrated().rating(self.values)

    @property
    def rating_intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) lower and (n,) upper bounds of 90% prediction intervals; InputError without calibration.

        About 90% of the human ratings of pairs with the same score lie within the interval.
        """
        return self._calibrated().interval(self.values)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for pairs whose texts are similar but probably differ in meaning.

        This is the case if the score is at least 0.4 and the probability of the same meaning is below 0.3.
        All values are false if the model cannot estimate this probability.
        """
        if self.same is None:
            return np.zeros(len(self.values), bool)
        return meaning_may_have_changed(self.values, self.same)

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
                lower; `rating` for the expected human rating; or `same` for the probability that the two
                texts have the same meaning.

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
        return self.values if scale == "raw" else self.percentiles if scale == "percentile" else self.ratings

    def _calibrated(self) -> ScoreScale:
        if self.calibration is None:
            raise InputError("no calibration: the model folder has none for this pooling and similarity")
        return self.calibration


def concatenate(parts: Iterable[Scores], no_scores: Scores) -> Scores:
    """Join the scores of several chunks, in order; counts, such as that of truncated texts, are added up."""
    parts = [no_scores, *parts]
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    same = None
    if no_scores.same is not None:
        same = np.concatenate([part.same for part in parts if part.same is not None])
    return replace(no_scores, values=np.concatenate([part.values for part in parts]), same=same, **counts)


class ScoreTable:
    """The table that `simllm score` writes: its columns, its rows (one for each pair) and its summary.

    The column "same" has the probability of the same meaning, if the metric can estimate it. The column
    "note" (only in the format "text") says "meaning may have changed". The scale "same" has neither column:
    its scores are the probability.

    Args:
        scale: One of `simllm.scoring.scores.SCALES`.
        format_: "text", "json" or "tsv".
        with_ids: Whether the table has a column with the pairs' ids.
        no_scores: The metric's scores of no pairs.
    """

    def __init__(self, scale: str, format_: str, with_ids: bool, no_scores: Scores) -> None:
        self.scale, self.form = scale, format_ if with_ids else None
        self.with_same = no_scores.same is not None and scale != "same"
        self.with_notes = self.with_same and format_ == "text"
        self.columns = [
            *(["id"] if with_ids else []),
            "score",
            *(["low", "high"] if scale == "rating" else []),
            *(["same"] if self.with_same else []),
            "candidate",
            "reference",
            *(["note"] if self.with_notes else []),
        ]

    def rows(self, pairs: Sequence[tuple[Any, ...]], scores: Scores) -> tables.Rows:
        """Return n rows of cells for n pairs: (candidate, reference), or (candidate, reference, id)."""
        columns = [scores.on(self.scale)]
        if self.scale == "rating":
            columns += scores.rating_intervals
        if self.with_same:
            columns.append(scores.on("same"))
        notes = [[CHANGED if changed else ""] if self.with_notes else [] for changed in scores.changed]
        return [
            [*shown_id(PairWithId(*pair), self.form), *numbers, *pair[:2], *note]
            for pair, note, *numbers in zip(pairs, notes, *(c.tolist() for c in columns), strict=True)
        ]

    def summary(self, scores: Scores) -> dict[str, Any]:
        """Return the summary of all pairs in the table as a JSON object.

        "mean" is on the table's scale, and "changed" counts pairs whose texts are similar but probably differ
        in meaning. Values that would say nothing are left out: the scale "raw", no warnings, no column
        "same".
        """
        same = {"changed": int(scores.changed.sum())} if self.with_same else {}
        return {
            "pairs": len(scores.values),
            "mean": float(scores.on(self.scale).mean()),
            **({"scale": self.scale} if self.scale != "raw" else {}),
            **same,
            "empty": scores.empty,
            "truncated": scores.truncated,
            "deduplicated": scores.deduplicated,
            "signature": scores.signature,
            **({"warnings": list(scores.warnings)} if scores.warnings else {}),
        }
