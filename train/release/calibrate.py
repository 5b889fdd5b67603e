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
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.io import files, folders
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.score_scale import ScoreScale, Values
from simllm.perturb.summaries import lexicon
from simllm.stats.platt_scaling import fit_platt
from train.contrastive.meaning_head_pairs import DIFFERENT, SAME, ItemPairs, MeaningPair, RuleMadePairs
from train.contrastive.meaning_items import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.command_line import run_tool

_PAIRS, _SEED, _KNOTS = 10_000, 12345, 21  # random pairs; random seed; most knots of the map to ratings
_FEWEST = 20  # rated pairs, or labelled pairs of each label


def main() -> int:
    """Parse the command line, calibrate the model, and return the exit status."""
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
    folders.check_addition(folder, saved_model.INFO)
    metric = SimLLM(folder)
    texts = list(dict.fromkeys(line for _, line in files.lines(comments)))
    people = ratings.load(rated)
    calibration = fit(
        _random_scores(metric, texts),
        metric.score(people.candidates, people.references).values,
        people.values,
        f"{_PAIRS:,} random pairs of {comments.name}; {len(people.values):,} ratings of {rated.name}",
    )
    info = replace(metric.model.info, calibration=calibration)
    folders.add(folder, saved_model.INFO, json.dumps(asdict(info), indent=2) + "\n")


def calibrate_meaning(folder: Path, held_out: Sequence[MeaningPair], source: str) -> None:
    """Calibrate the probabilities of the meaning head, and write the result into the model folder.

    The meaning head predicts the probability that two texts have the same meaning. One half of the held-out
    pairs is used here. `train.release.measure` uses the other half to measure how reliable the calibrated
    probabilities are.

    Args:
        folder: The model folder, with a meaning head.
        held_out: The held-out pairs from `meaning_test_pairs`.
        source: The name of the file `labelled` that `meaning_test_pairs` has read. The name is stored in the
            model folder.

    Raises:
        InputError: simllm did not write the folder, or it has no meaning head.
    """
    folders.check_addition(folder, saved_model.INFO)
    metric = SimLLM(folder)
    info = metric.model.info
    if info.meaning is None:
        raise InputError(f"{folder}: has no meaning head to calibrate")
    pairs = held_out[::2]
    same = metric.score([pair.first for pair in pairs], [pair.second for pair in pairs]).on("same")
    same = same.clip(1e-6, 1 - 1e-6)
    logits = (np.log(same / (1 - same)) - info.meaning.intercept) / info.meaning.slope
    slope, intercept = fit_platt(logits, np.array([pair.label for pair in pairs]))
    meaning = replace(
        info.meaning,
        slope=round(slope, 5),
        intercept=round(intercept, 5),
        fitted_on=f"{len(pairs):,} pairs, among them those of {source}",
    )
    folders.add(folder, saved_model.INFO, json.dumps(asdict(replace(info, meaning=meaning)), indent=2) + "\n")


def meaning_test_pairs(comments: Path, labelled: Path, items: str | None) -> list[MeaningPair]:
    """Collect held-out pairs of texts, half with the same meaning and half with different meanings.

    The pairs come from three sources:

    - The file `labelled`. Pairs with the label "same" have the same meaning. Pairs with the label
      "entailment" have the same meaning, too, if they come from the data set `breaking_nli`, because their
      texts differ only by a synonym. "Entailment" pairs from other data sets are left out, because the second
      text may say less than the first. Pairs with any other label have different meanings.
    - The comments. Rules make as many pairs from the comments as `labelled` contributes.
    - The meaning items (texts with rewordings and changes of meaning), with four pairs per item.

    Pairs with the more frequent label are then left out at random, until both labels are equally frequent.

    Args:
        comments: A file of held-out comments, one per line.
        labelled: A file of held-out labelled pairs, the output of `train.data.hold_out_pairs`.
        items: A file or glob pattern of meaning items; the splits "dev" and "test" are used. None: no items.

    Returns:
        The pairs, in random order.

    Raises:
        InputError: A file is wrong, or there are fewer than 20 pairs with one of the labels.
    """
    random = np.random.default_rng(_SEED)
    pairs = []
    for where, row in files.objects(labelled):
        first, second, label, name = (files.text_under(row, key, where) for key in ("a", "b", "label", "set"))
        is_same = label == "same" or (label == "entailment" and name == "breaking_nli")
        if is_same or label != "entailment":
            pairs.append(MeaningPair(first, second, SAME if is_same else DIFFERENT))
    rules = RuleMadePairs(list(dict.fromkeys(line for _, line in files.lines(comments))), lexicon.load())
    pairs += [rules.draw(random) for _ in range(len(pairs))]
    if items:
        nothing, words = ExcludedTexts([]), lexicon.load().held_out_words
        held_out = ItemPairs([i for s in ("dev", "test") for i in read_items(items, s, nothing, words)])
        pairs += [held_out.draw(random) for _ in range(4 * len(held_out))]
    by_label = [[pair for pair in pairs if pair.label == label] for label in (SAME, DIFFERENT)]
    count = min(map(len, by_label))
    if count < _FEWEST:
        raise InputError(f"{labelled}: too few pairs ({count} of one label); {_FEWEST} or more are needed")
    chosen = [group[i] for group in by_label for i in random.permutation(len(group))[:count]]
    return [chosen[i] for i in random.permutation(len(chosen))]


def _random_scores(metric: SimLLM, texts: list[str]) -> Values:
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


def fit(random: Values, scores: Values, rated: Values, fitted_on: str) -> ScoreScale:
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


def _rounded(values: Values) -> tuple[float, ...]:
    return tuple(round(value, 5) for value in values.tolist())


if __name__ == "__main__":
    sys.exit(main())
