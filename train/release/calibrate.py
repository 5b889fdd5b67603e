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
_FEWEST = 20  # rated pairs


def main() -> int:
    """Calibrate the model that the command line names, and return the exit status.

    Calibration fits the scale that converts a score of the model to a percentile and to an expected human
    rating. A model may also have a meaning head, which predicts the probability that two texts have the same
    meaning. With the option `--labelled`, these probabilities are calibrated as well.
    """
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
    """Fit the score scale of a model, and write the scale into the model folder.

    The scale maps a score to its percentile among the scores of random pairs of comments, and to the
    expected human rating.

    Args:
        folder: The model folder.
        comments: A file of held-out comments, one per line.
        rated: A file of rated text pairs, in the format for `simllm evaluate`.

    Raises:
        InputError: simllm did not write the folder, a file is wrong, or there are too few texts.
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
    """Score 10,000 random text pairs, from which the percentiles of the score scale are computed.

    Args:
        metric: The model.
        texts: The texts to pair, without repetitions.

    Returns:
        The scores. No text is paired with itself.

    Raises:
        InputError: There are fewer than two texts.
    """
    if len(texts) < 2:
        raise InputError("expected two or more different comments")
    random = np.random.default_rng(_SEED)
    first = random.integers(len(texts), size=_PAIRS)
    second = (first + random.integers(1, len(texts), size=_PAIRS)) % len(texts)
    return metric.score([texts[i] for i in first], [texts[i] for i in second]).values


def fit(random: Floats, scores: Floats, rated: Floats, fitted_on: str) -> ScoreScale:
    """Fit a score scale, which maps scores to percentiles and to human ratings.

    The percentiles come from the random pairs. For the ratings, the rated pairs are sorted by score and
    split into groups. The mean, the 5% quantile and the 95% quantile of the ratings are computed in each
    group. Isotonic regression then adjusts these three statistics so that they never fall from one group to
    the next.

    Args:
        random: (k,) scores of random text pairs.
        scores: (n,) scores of rated text pairs.
        rated: (n,) ratings of these text pairs.
        fitted_on: Description of the random and the rated pairs, which is stored with the scale.

    Returns:
        The score scale.

    Raises:
        InputError: There are fewer than 20 rated pairs.
    """
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
        _rounded(np.quantile(random, np.linspace(0, 1, 1001))), knots, mean, low, high, fitted_on
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(value, 5) for value in values.tolist())


if __name__ == "__main__":
    sys.exit(main())
