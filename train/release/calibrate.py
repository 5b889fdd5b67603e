"""Calibrate a model: fit the maps from scores to percentiles among random pairs and to human ratings.

    python -m train.release.calibrate my/model --comments held-out.txt --ratings rated.jsonl

The model must not have been trained on the comments, one per line. Results must not be reported on
these ratings. Both maps are written into the folder's `simllm.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.io import files, folders
from simllm.metric import SimLLM
from simllm.model import checkpoint
from simllm.model.score_scale import Calibration, Values
from train.runtime.tool_command import run_tool

_PAIRS, _SEED, _KNOTS = 10_000, 12345, 21


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.calibrate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="the model folder, which is changed")
    parser.add_argument("--comments", type=Path, required=True, help="held-out comments, one per line")
    parser.add_argument("--ratings", type=Path, required=True, help="rated pairs, as for simllm evaluate")
    options = parser.parse_args()
    return run_tool(lambda: calibrate(options.model, options.comments, options.ratings))


def calibrate(folder: Path, comments: Path, rated: Path) -> None:
    """Fit both maps and write them into the model folder.

    Args:
        folder: The model folder.
        comments: Held-out comments, one per line.
        rated: Rated pairs, as for `simllm evaluate`.

    Raises:
        InputError: simllm did not write the folder, a file is wrong, or there are too few texts.
    """
    folders.check_addition(folder, checkpoint.INFO)
    metric = SimLLM(folder)
    texts = list(dict.fromkeys(line for _, line in files.lines(comments)))
    people = ratings.load(rated)
    calibration = fit(
        _random_scores(metric, texts),
        metric.score(people.candidates, people.references).values,
        people.values,
        f"{_PAIRS:,} random pairs of {comments.name}; {len(people.values):,} ratings of {rated.name}",
    )
    info = replace(metric.checkpoint.info, calibration=calibration)
    folders.add(folder, checkpoint.INFO, json.dumps(asdict(info), indent=2) + "\n")


def _random_scores(metric: SimLLM, texts: list[str]) -> Values:
    """Score random pairs of different texts."""
    if len(texts) < 2:
        raise InputError("expected two or more different comments")
    random = np.random.default_rng(_SEED)
    first = random.integers(len(texts), size=_PAIRS)
    second = (first + random.integers(1, len(texts), size=_PAIRS)) % len(texts)
    return metric.score([texts[i] for i in first], [texts[i] for i in second]).values


def fit(random: Values, scores: Values, rated: Values, fitted_on: str) -> Calibration:
    """Fit a calibration.

    The rated pairs are sorted by score and split into groups, one for each knot. The mean ratings of
    the groups, and the bounds of the 90% intervals of their ratings, are made monotone.

    Args:
        random: (k,) scores of random pairs.
        scores: (n,) scores of rated pairs.
        rated: (n,) their ratings.
        fitted_on: The source of the pairs and ratings.
    """
    groups = np.array_split(np.argsort(scores, kind="stable"), min(_KNOTS, len(scores) // 10))
    if len(groups) < 2:
        raise InputError(f"{len(scores)} rated pairs are too few to calibrate on; expected 20 or more")
    curves = [
        isotonic_regression([measure(rated[group]) for group in groups]).x
        for measure in (np.mean, lambda r: np.quantile(r, 0.05), lambda r: np.quantile(r, 0.95))
    ]
    mean, low, high = (_rounded(curve) for curve in curves)
    knots = _rounded(np.array([scores[group].mean() for group in groups]))
    return Calibration(
        _rounded(np.quantile(random, np.linspace(0, 1, 1001))), knots, mean, low, high, fitted_on
    )


def _rounded(values: Values) -> tuple[float, ...]:
    return tuple(round(value, 5) for value in values.tolist())


if __name__ == "__main__":
    sys.exit(main())
