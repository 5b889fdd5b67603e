"""How far a model that is being trained agrees with people, and prefers meaning to words."""

from __future__ import annotations

from pathlib import Path

from scipy.stats import spearmanr

from simllm.evaluation import contrast, ratings
from simllm.metric import SimLLM
from train.config import ContrastiveConfig


class Agreement:
    """The criterion of the contrastive stage, and what else is written into its log."""

    def __init__(self, config: ContrastiveConfig) -> None:
        self.rated = [ratings.load(Path(dev)) for dev in config.dev]
        self.triples = contrast.load()

    def __call__(self, metric: SimLLM) -> tuple[float, dict[str, float]]:
        """The criterion, lower is better: minus the mean of Spearman's correlations on `dev`.

        Nothing is chosen on the contrast set, which is only written down.
        """
        figures = {}
        for rated in self.rated:
            values = metric.score(rated.candidates, rated.references).values
            figures[f"spearman_{rated.name}"] = float(spearmanr(values, rated.values).statistic)
        criterion = -sum(figures.values()) / len(figures)
        for form, accuracy in contrast.by(self.triples.forms, contrast.wins(metric, self.triples)).items():
            figures[f"contrast_{form}"] = accuracy
        return criterion, figures
