"""A study: several metrics on one set of rated pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.evaluation.baselines import baseline
from simllm.metric import SimLLM

METRICS = ("simllm", "bleu", "rouge-l", "jaccard")


@dataclass(frozen=True)
class Row:
    """One metric's correlation with the ratings of n pairs."""

    metric: str
    n: int
    spearman: float
    p_value: float
    low: float  # 95% bootstrap interval
    high: float


def study(
    file: Path, metrics: Iterable[str] = METRICS, model: str | os.PathLike[str] | None = None
) -> list[Row]:
    """Correlate each metric with the ratings in `file`; rows in the order of `metrics`.

    Raises InputError for a bad file, an unknown metric or a library that is missing.
    """
    try:
        from simllm.evaluation.correlation import spearman
    except ModuleNotFoundError as error:
        raise InputError(_remedy(error)) from None
    rated = ratings.load(file)
    rows = []
    for name in metrics:
        try:
            if name == "simllm":
                scores = SimLLM(model).score(rated.candidates, rated.references).values
            else:
                scores = baseline(name)(rated.candidates, rated.references)
        except ModuleNotFoundError as error:
            raise InputError(f"metric {name}: {_remedy(error)}") from None
        result = spearman(scores, rated.values)
        rows.append(Row(name, len(scores), result.rho, result.p_value, result.low, result.high))
    return rows


def _remedy(error: ModuleNotFoundError) -> str:
    return f"{error.name} is not installed; pip install 'simllm[eval]'"
