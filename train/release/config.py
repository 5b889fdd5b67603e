"""Configuration of measurements, such as `configs/measure.yaml`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MeasureConfig:
    """The data sets, and the metrics to compare with."""

    rated: tuple[str, ...]  # files of text pairs with human ratings
    baselines: tuple[str, ...]  # names of other metrics, as for `simllm evaluate --metrics`
    comments: str  # the comments.jsonl of a corpus; its held-out comments are used
    comments_per_language: int  # largest number of comments per programming language for the retrieval
    unseen_comments: str | None = None  # comments.jsonl of repositories that are not trained on; all are used
    random_pairs: int  # number of random pairs of comments
    test_comments: str | None = None  # held-out comments, to test the meaning head's probabilities
    labelled: str | None = None  # held-out labelled pairs, for the same purpose
    items: str | None = None  # meaning items (file or glob pattern); those of the split "test" are used
    unseen_items: str | None = None  # meaning items that no model is trained on; all are used
