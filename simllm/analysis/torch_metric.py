"""The metric for torchmetrics and Lightning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torchmetrics import Metric

from simllm.analysis.frameworks import default_metric
from simllm.metric import SimLLM
from simllm.scoring.scores import about_percentiles


class SimLLMScore(Metric):
    """Mean score of generated texts, as a metric of torchmetrics.

    Each process adds up the scores of its own pairs; `compute` joins the sums of all processes.

    Examples:
        >>> mean_score = SimLLMScore()
        >>> mean_score.update(["adds two lists"], ["combines 2 arrays"])
        >>> mean_score.compute().shape
        torch.Size([])
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    total: torch.Tensor
    pairs: torch.Tensor

    def __init__(self, metric: SimLLM | None = None, *, scale: str = "raw", **options: Any) -> None:
        """Make a metric without pairs.

        Args:
            metric: The metric; by default the one with the included model, which all such objects share.
            scale: The scale of the scores, as in `Scores.on`: `raw`, `percentile`, `same` or `graded`.
            options: Options of `torchmetrics.Metric`, such as `dist_sync_on_step`.

        Raises:
            InputError: The scale is unknown, or the model has no values on it.
        """
        super().__init__(**options)
        (metric or default_metric()).no_scores.on(scale)  # a wrong scale is refused before the first update
        self.scale = scale
        # The default metric is no attribute: clones and pickled copies would each load its model again.
        self._metric = metric
        self.add_state("total", torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("pairs", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds: Sequence[str], target: Sequence[str]) -> None:
        """Score n texts, each against the reference at the same index, and add the scores to the sum."""
        scores = (self._metric or default_metric()).score(preds, target)
        for message in about_percentiles(scores, self.scale):
            warnings.warn(message, stacklevel=2)
        values = scores.on(self.scale)
        self.total += float(values.sum())
        self.pairs += len(values)

    def compute(self) -> torch.Tensor:
        """Return the mean of the scores so far; NaN without pairs."""
        return self.total / self.pairs

    @property
    def signature(self) -> str:
        """Text that names everything that can change a score, to report with the mean."""
        return (self._metric or default_metric()).signature
