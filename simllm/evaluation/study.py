"""A study: several metrics on one set of rated pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.evaluation.baselines import BASELINES, baseline
from simllm.metric import SimLLM
from simllm.text import clean

METRICS = ("simllm", *BASELINES)


@dataclass(frozen=True)
class Row:
    """One metric's correlation with the ratings of n pairs."""

    metric: str
    n: int
    spearman: float
    p_value: float
    low: float  # 95% bootstrap interval
    high: float


@dataclass(frozen=True)
class Study:
    """Rows in the order of the metrics; the signature is simllm's, empty without it."""

    rows: list[Row]
    signature: str


def study(file: Path, metrics: Sequence[str] = METRICS, model: str | os.PathLike[str] | None = None) -> Study:
    """Correlate each metric with the ratings in `file`.

    Every metric is given the same cleaned texts, so that none gains or loses by case,
    markup or the spacing of punctuation. Raises InputError for a bad file, an unknown
    metric or a library that is missing.
    """
    for name in metrics:
        if name not in METRICS:
            raise InputError(f"metric {name!r}: expected one of {', '.join(METRICS)}")
    try:
        from simllm.evaluation.correlation import spearman

        rated = ratings.load(file)
        candidates, references = ([clean(t) for t in texts] for texts in (rated.candidates, rated.references))
        rows, signature = [], ""
        for name in metrics:
            if name == "simllm":
                scores = SimLLM(model).score(candidates, references)
                values, signature = scores.values, scores.signature
            else:
                values = baseline(name)(candidates, references)
            result = spearman(values, rated.values)
            rows.append(Row(name, len(values), result.rho, result.p_value, result.low, result.high))
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; install simllm with its extra `eval`") from None
    return Study(rows, signature)
