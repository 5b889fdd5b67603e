"""Metrics to compare with: a metric is a function of candidates and references.

Each file holds one; it imports its library when it is called, so that a missing library
is one metric's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

import numpy as np
from numpy.typing import NDArray

Metric = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]  # -> (n,) scores

BASELINES = ("bleu", "jaccard", "rouge-l")


def baseline(name: str) -> Metric:
    """Return the baseline called `name`, one of `BASELINES`."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return cast(Metric, module.score)
