"""Calibrate a model: fit the scale that converts a score to a percentile and to an expected human rating.

    python -m train.release.calibrate my/model --comments held-out.txt --ratings rated.jsonl

The percentile of a score is the share of random pairs of comments that score lower. The file `held-out.txt`
has one comment per line, and the model must not have been trained on these comments. Do not report results on
the ratings that the scale is fitted to. The scale is written into the model folder's `simllm.json`.

A model may have a meaning head, which predicts the probability that two texts have the same meaning. With
`--labelled`, these probabilities are calibrated as well.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.io import read_lines
from simllm.io.output_folder import OutputFolder
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.percentiles_and_expected_ratings import ScoreScale
from train.release.meaning_head_calibration import calibrate_meaning, meaning_test_pairs
from train.runtime.tool_exit_status import run_tool

_PAIRS, _SEED, _KNOTS = 10_000, 12345, 21  # random pairs; random seed; most knots of the map to ratings
# Rated pairs.
_FEWEST = 20


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.calibrate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="the model folder, which is changed")
    parser.add_argument("--comments", type=Path, required=True, help="held-out comments, one per line")
    parser.add_argument("--ratings", type=Path, required=True, help="rated pairs, as for simllm evaluate")
    parser.add_argument("--labelled", type=Path, metavar="FILE", help="output of train.data.hold_out_pairs")
    parser.add_argument(
        "--items", metavar="FILES", help="with --labelled: meaning items; the held-out tenth is used"
    )
    options = parser.parse_args()

    def run() -> None:
        # All files are read first, because a wrong file must leave the model as it was.
        labelled = options.labelled
        pairs = meaning_test_pairs(options.comments, labelled, options.items) if labelled else None
        calibrate(options.model, options.comments, options.ratings)
        if pairs:
            calibrate_meaning(options.model, pairs, labelled.name)

    return run_tool(run)


def calibrate(folder: Path, comments: Path, rated: Path) -> None:
    """Fit the score scale of a model, and write it into the model folder.

    `comments` has held-out comments, one per line; `rated` has rated text pairs as for `simllm evaluate`.
    """
    OutputFolder(folder).check_addition(saved_model.INFO)
    metric = SimLLM(folder)
    texts = list(dict.fromkeys(line for _, line in read_lines.lines(comments)))
    people = ratings.load(rated)
    calibration = fit(
        _random_scores(metric, texts),
        metric.score(people.candidates, people.references).values,
        people.values,
        f"{_PAIRS:,} random pairs of {comments.name}; {len(people.values):,} ratings of {rated.name}",
    )
    info = replace(metric.model.info, calibration=calibration)
    OutputFolder(folder).write(saved_model.INFO, saved_model.info_json(info))


def _random_scores(metric: SimLLM, texts: list[str]) -> Floats:
    """Score 10,000 random pairs of different texts; `texts` has no repetitions."""
    if len(texts) < 2:
        raise InputError("expected two or more different comments")
    random = np.random.default_rng(_SEED)
    first = random.integers(len(texts), size=_PAIRS)
    # A shift by 1 to n - 1 never pairs a text with itself.
    second = (first + random.integers(1, len(texts), size=_PAIRS)) % len(texts)
    return metric.score([texts[i] for i in first], [texts[i] for i in second]).values


def fit(random: Floats, scores: Floats, rated: Floats, fitted_on: str) -> ScoreScale:
    """Fit a score scale to (k,) scores of random pairs, and to (n,) scores of pairs with their (n,) ratings.

    The rated pairs are sorted by score and split into groups. Isotonic regression makes the mean, the 5% and
    the 95% quantile of the groups' ratings rise with the score. `fitted_on` describes the data.
    """
    # Ten or more pairs a group, so that its quantiles mean something.
    groups = np.array_split(np.argsort(scores, kind="stable"), min(_KNOTS, len(scores) // 10))
    if len(groups) < 2:
        raise InputError(f"{len(scores)} rated pairs are too few to calibrate on; expected {_FEWEST} or more")
    curves = [
        isotonic_regression([measure(rated[group]) for group in groups]).x
        for measure in (np.mean, lambda r: np.quantile(r, 0.05), lambda r: np.quantile(r, 0.95))
    ]
    mean, low, high = (_rounded(curve) for curve in curves)
    knots = _rounded(np.array([scores[group].mean() for group in groups]))
    return ScoreScale(
        # A thousandth of the random pairs between two neighbouring values.
        _rounded(np.quantile(random, np.linspace(0, 1, 1001))),
        knots,
        mean,
        low,
        high,
        fitted_on,
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(value, 5) for value in values.tolist())


if __name__ == "__main__":
    sys.exit(main())
