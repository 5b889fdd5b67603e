"""Calibrate a model: fit the scale that converts a score to a percentile.

    python -m train.release.calibrate my/model --comments held-out.txt

The percentile of a score is the share of random pairs of comments that score lower. The file `held-out.txt`
has one comment per line, and the model must not have been trained on these comments. The scale is written
into the model folder's `simllm.json`.

A model may have a meaning head, which predicts the probability that two texts have the same meaning. With
`--labelled`, these probabilities are calibrated as well. At the end, the command writes the golden scores,
with which `simllm selftest` compares new scores.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from simllm.analysis import golden_scores
from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io import reading
from simllm.io.output_folder import OutputFolder
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.config import ScoreScale
from simllm.perturb.summaries import lexicon
from simllm.scoring.scores import Scores
from simllm.stats.calibration import fit_platt
from train.contrastive.meaning_pairs import DIFFERENT, SAME, ItemPairs, MeaningPair, RuleMadePairs, read_items
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.command import make_parser, run_command

_SEED = 12345
_PAIRS = 10_000  # random pairs of comments
_FALSE_ALARMS = 0.002  # largest share of random pairs that may get a probability above one half
_FEWEST = 20  # labelled pairs of each label
_RULE_MADE = 2000  # pairs made by rule if there are no labelled ones


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release.calibrate", __doc__)
    parser.add_argument("model", type=Path, help="the model folder, which is changed")
    parser.add_argument("--comments", type=Path, required=True, help="held-out comments, one per line")
    parser.add_argument("--labelled", type=Path, metavar="FILE", help="output of train.data.hold_out_pairs")
    parser.add_argument(
        "--items", metavar="FILES", help="with --labelled: meaning items; the held-out tenth is used"
    )
    return run_command(parser, _calibrate)


def _calibrate(model: Path, comments: Path, labelled: Path | None, items: str | None) -> None:
    OutputFolder(model).check_addition(golden_scores.GOLDEN_FILE)
    # All files are read first, because a wrong file must leave the model as it was.
    pairs = meaning_test_pairs(comments, labelled, items) if labelled else None
    calibrate(model, comments)
    if labelled and pairs:
        calibrate_meaning(model, pairs, comments, labelled.name)
    golden_scores.write_golden_scores(model)


def calibrate(folder: Path, comments: Path) -> None:
    """Fit the score scale of a model to held-out comments, one per line, and write it into the folder."""
    OutputFolder(folder).check_addition(saved_model.INFO)
    # Of comments of several sentences, many pairs have a score of exactly 0.
    metric = SimLLM(folder, long="whole")
    random = score_random_pairs(metric, _read_different(comments)).values
    # A thousandth of the random pairs between two neighbouring values.
    quantiles = np.quantile(random, np.linspace(0, 1, 1001)).round(5).tolist()
    calibration = ScoreScale(tuple(quantiles), f"{_PAIRS:,} random pairs of {comments.name}")
    info = replace(metric.model.info, calibration=calibration)
    OutputFolder(folder).write(saved_model.INFO, saved_model.info_json(info))


def score_random_pairs(metric: SimLLM, texts: Sequence[str], number: int = _PAIRS) -> Scores:
    """Score random pairs of different texts; `texts` has no repetitions."""
    if len(texts) < 2:
        raise InputError("expected two or more different comments")
    random = np.random.default_rng(_SEED)
    first = random.integers(len(texts), size=number)
    # A shift by 1 to n - 1 never pairs a text with itself.
    second = (first + random.integers(1, len(texts), size=number)) % len(texts)
    return metric.score([texts[i] for i in first], [texts[i] for i in second])


def _read_different(comments: Path) -> list[str]:
    """Read the different lines of a file."""
    return list(dict.fromkeys(line for _, line in reading.read_lines(comments)))


def meaning_test_pairs(comments: Path, labelled: Path | None, items: str | None) -> list[MeaningPair]:
    """Collect held-out pairs in random order, half of them with the same meaning.

    `labelled` is the output of `train.data.hold_out_pairs`, or None. Rules make as many pairs again from the
    lines of `comments`, and half as many pairs of lines are drawn at random. Each meaning item of the files
    `items`, if there are any, gives four pairs.
    """
    random = np.random.default_rng(_SEED)
    pairs = []
    for where, row in reading.objects(labelled) if labelled else ():
        first, second, label, name = (
            reading.text_under(row, key, where) for key in ("a", "b", "label", "set")
        )
        # In most data sets, the second text of an "entailment" may say less than the first. In breaking_nli,
        # the two texts differ only by a synonym.
        is_same = label == "same" or (label == "entailment" and name == "breaking_nli")
        if is_same or label != "entailment":
            pairs.append(MeaningPair(first, second, SAME if is_same else DIFFERENT))
    texts = _read_different(comments)
    rules, made = RuleMadePairs(texts, lexicon.load()), len(pairs) or _RULE_MADE
    pairs += [rules.draw(random) for _ in range(made)]
    # Comments that have nothing to do with each other: the easy pairs, which must not get high probabilities.
    for _ in range(made // 2):
        a, b = (texts[i] for i in random.integers(len(texts), size=2))
        if a != b:
            pairs.append(MeaningPair(a, b, DIFFERENT))
    if items:
        nothing, words = ExcludedTexts([]), lexicon.load().held_out_words
        held_out = ItemPairs([i for s in ("dev", "test") for i in read_items(items, s, nothing, words)])
        pairs += [held_out.draw(random) for _ in range(4 * len(held_out))]
    by_label = [[pair for pair in pairs if pair.label == label] for label in (SAME, DIFFERENT)]
    count = min(map(len, by_label))
    if count < _FEWEST:
        raise InputError(
            f"{labelled or comments}: too few pairs ({count} of one label); {_FEWEST} or more are needed"
        )
    # Equally many pairs of both labels: a calibrated probability depends on how frequent each label is.
    chosen = [group[i] for group in by_label for i in random.permutation(len(group))[:count]]
    return [chosen[i] for i in random.permutation(len(chosen))]


def calibrate_meaning(folder: Path, held_out: Sequence[MeaningPair], comments: Path, source: str) -> None:
    """Calibrate the probabilities of the meaning head, and write the result into the model folder.

    Slope and intercept are fitted to `held_out`, from `meaning_test_pairs`; `source` is the name of its file
    of labelled pairs. The penalty is the smallest one with which at most .2% of random pairs of `comments`,
    one per line, get a probability above one half.
    """
    OutputFolder(folder).check_addition(saved_model.INFO)
    metric = SimLLM(folder, similarity="cosine", long="whole")
    info = metric.model.info
    if info.meaning is None:
        raise InputError(f"{folder}: has no meaning head to calibrate")
    # `measure_reliability` uses the other half.
    pairs = held_out[::2]
    # Without the calibration that the folder may have, the probability is the sigmoid of the head's logit.
    metric.meaning = saved_model.MeaningInfo(info.meaning.head)
    logits = _logits(metric.score([pair.first for pair in pairs], [pair.second for pair in pairs]))
    slope, intercept = fit_platt(logits, np.array([pair.label for pair in pairs]))
    if round(slope, 5) <= 0:
        raise InputError(
            f"{folder}: its meaning head says the opposite of {source} and the other pairs, or nothing"
        )
    unlike = score_random_pairs(metric, _read_different(comments))
    meaning = replace(
        info.meaning,
        slope=round(slope, 5),
        intercept=round(intercept, 5),
        penalty=round(smallest_penalty(slope * _logits(unlike) + intercept, unlike.values), 5),
        fitted_on=f"{len(pairs):,} pairs, among them those of {source}",
    )
    OutputFolder(folder).write(saved_model.INFO, saved_model.info_json(replace(info, meaning=meaning)))


def _logits(scores: Scores) -> Floats:
    """Return the (n,) logits of the meaning head, from probabilities without calibration."""
    # The logit of 0 or 1 is infinite.
    same = scores.on("same").clip(1e-6, 1 - 1e-6)
    return np.log(same / (1 - same))


def smallest_penalty(logits: Floats, cosines: Floats) -> float:
    """Compute the smallest penalty that leaves enough of n unlike pairs with a negative logit.

    `logits` are calibrated, but without penalty. The penalty cannot help pairs with a high cosine.
    """
    distances = saved_model.distance(cosines)
    needed = np.sort((logits[distances > 0] / distances[distances > 0]).clip(0))
    alarms = max(0, int(_FALSE_ALARMS * len(logits)) - int(((logits > 0) & (distances == 0)).sum()))
    return float(needed[-1 - alarms]) if alarms < len(needed) else 0.0


if __name__ == "__main__":
    sys.exit(main())
