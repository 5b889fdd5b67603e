"""The table of scores that `simllm score` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simllm.io import tables
from simllm.io.read_text_pairs import PairWithId, shown_id
from simllm.scoring.changed_meaning import CHANGED

if TYPE_CHECKING:
    from simllm.scoring.scores import Scores


class ScoreTable:
    """The table that `simllm score` writes: its columns, its rows (one for each text pair) and its summary.

    Two columns exist only if the metric can estimate the probability that two texts have the same meaning:

    - "same" has this probability.
    - "note" exists only in the format "text". It says "meaning may have changed" if the two texts in the row
      are similar but probably differ in meaning.

    The scale "same" has neither column: its scores are the probability.

    Args:
        scale: The scale on which scores are shown: "raw" (the scores themselves), "percentile" (the
            percentage of random pairs that score lower), "rating" (expected human rating) or "same"
            (probability that both texts have the same meaning).
        format_: The table's format: "text", "json" or "tsv".
        with_ids: Whether the table has a column with the pairs' ids.
        no_scores: An empty `Scores` object (the metric's result for an empty list of pairs). Its attribute
            `same` is None if the metric cannot estimate the probability of the same meaning.
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
        """Return one table row for each of n text pairs.

        Args:
            pairs: n tuples: (candidate, reference), or (candidate, reference, id).
            scores: The scores of the n pairs.

        Returns:
            n lists of cells, in the order of the table's columns.
        """
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
        """Return the table's summary as a JSON object.

        Args:
            scores: The scores of all pairs in the table.

        Returns:
            A dict with these keys:

            - "pairs": Number of pairs.
            - "mean": Mean score on the table's scale.
            - "scale": The table's scale, such as "percentile"; left out if it is "raw".
            - "changed": Number of pairs whose texts are similar but probably differ in meaning. Left out if
              the table has no column `same` (the probability that both texts have the same meaning).
            - "empty", "truncated", "deduplicated", "signature": The attributes of `scores` with these names.
            - "warnings": What changes how the scores are read; left out if nothing does.
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
