"""Platt scaling, which turns the outputs of a classifier into calibrated probabilities."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from simllm.array_types import AnyFloats


def fit_platt(logits: AnyFloats, labels: AnyFloats) -> tuple[float, float]:
    """Fit sigmoid(slope * logit + intercept) to (n,) labels, 0 and 1, by maximum likelihood (Platt, 1999).

    Both labels must occur.
    """

    def loss(parameters: AnyFloats) -> float:
        x = parameters[0] * logits + parameters[1]
        return float(np.mean(np.logaddexp(0.0, x) - labels * x))

    slope, intercept = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return float(slope), float(intercept)
