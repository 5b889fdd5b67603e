"""Calibration of the meaning head on held-out text pairs, and a test of the calibrated probabilities.

The meaning head predicts the probability that two texts have the same meaning. Calibration makes the
probabilities agree with how often the texts do have the same meaning. One half of the pairs is used for the
calibration, and the other half for the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.io import read_json_lines, read_lines
from simllm.io.output_folder import OutputFolder
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.perturb.summaries import lexicon
from simllm.stats.calibration_error import calibration_errors, reliability
from simllm.stats.platt_scaling import fit_platt
from train.contrastive.meaning_head_pairs import DIFFERENT, SAME, ItemPairs, MeaningPair, RuleMadePairs
from train.contrastive.meaning_items import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.release.measurement_config import MeasureConfig

_SEED = 12345
_FEWEST = 20  # labelled pairs of each label


def meaning_test_pairs(comments: Path, labelled: Path, items: str | None) -> list[MeaningPair]:
    """Collect held-out pairs of texts, half with the same meaning and half with different meanings.

    The pairs come from three sources:

    - The file `labelled`. Pairs with the label "same" have the same meaning. Pairs with the label
      "entailment" have the same meaning, too, if they come from the data set `breaking_nli`, because their
      texts differ only by a synonym. "Entailment" pairs from other data sets are left out, because the second
      text may say less than the first. Pairs with any other label have different meanings.
    - The comments. Rules make pairs from them, such as a comment and a rewording of it. The number of these
      pairs equals the number of pairs from `labelled`.
    - The meaning items. A meaning item has a main text, rewordings, and texts with other meanings. Four pairs
      per item are drawn.

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
    for where, row in read_json_lines.objects(labelled):
        first, second, label, name = (
            read_json_lines.text_under(row, key, where) for key in ("a", "b", "label", "set")
        )
        is_same = label == "same" or (label == "entailment" and name == "breaking_nli")
        if is_same or label != "entailment":
            pairs.append(MeaningPair(first, second, SAME if is_same else DIFFERENT))
    rules = RuleMadePairs(list(dict.fromkeys(line for _, line in read_lines.lines(comments))), lexicon.load())
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


def calibrate_meaning(folder: Path, held_out: Sequence[MeaningPair], source: str) -> None:
    """Calibrate the probabilities of the meaning head, and write the result into the model folder.

    The meaning head predicts the probability that two texts have the same meaning. One half of the held-out
    pairs is used here. `measure_reliability` uses the other half to measure how reliable the calibrated
    probabilities are.

    Args:
        folder: The model folder, with a meaning head.
        held_out: The held-out pairs from `meaning_test_pairs`.
        source: The name of the file of labelled pairs from which some of `held_out` come. The name is stored
            in the model folder.

    Raises:
        InputError: simllm did not write the folder, or it has no meaning head.
    """
    OutputFolder(folder).check_addition(saved_model.INFO)
    metric = SimLLM(folder)
    info = metric.model.info
    if info.meaning is None:
        raise InputError(f"{folder}: has no meaning head to calibrate")
    pairs = held_out[::2]
    same = metric.score([pair.first for pair in pairs], [pair.second for pair in pairs]).on("same")
    same = same.clip(1e-6, 1 - 1e-6)
    logits = (np.log(same / (1 - same)) - info.meaning.intercept) / info.meaning.slope
    slope, intercept = fit_platt(logits, np.array([pair.label for pair in pairs]))
    if round(slope, 5) <= 0:
        raise InputError(
            f"{folder}: its meaning head says the opposite of {source} and the other pairs, or nothing"
        )
    meaning = replace(
        info.meaning,
        slope=round(slope, 5),
        intercept=round(intercept, 5),
        fitted_on=f"{len(pairs):,} pairs, among them those of {source}",
    )
    OutputFolder(folder).write(saved_model.INFO, saved_model.info_json(replace(info, meaning=meaning)))


def measure_reliability(learned: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure how well the probabilities of the meaning head agree with the labels of text pairs.

    The meaning head predicts the probability that two texts have the same meaning. The labels tell whether
    two texts have the same meaning. The text pairs are from `meaning_test_pairs`, and were held out from
    training. Only one half of them is used here, because `calibrate_meaning` fits the probabilities to the
    other half.

    Args:
        learned: The model.
        config: Settings that name the files from which the text pairs are made: `test_comments`, `labelled`
            and, optionally, `items`.

    Returns:
        A dictionary with the single key "reliability". Its value is a dictionary: the number of pairs
        ("pairs"), the share of pairs that are classified correctly ("accuracy"), the expected calibration
        error ("ece"), and the bins of the reliability diagram ("bins"). The returned dictionary is empty if
        the model has no meaning head, or `config` lacks `test_comments` or `labelled`.
    """
    if not (learned.head and config.test_comments and config.labelled):
        return {}
    pairs = meaning_test_pairs(Path(config.test_comments), Path(config.labelled), config.items)[1::2]
    same = learned.score([pair.first for pair in pairs], [pair.second for pair in pairs]).on("same")
    labels = np.array([pair.label for pair in pairs])
    diagram = reliability(same, labels)
    figures = {
        "pairs": len(pairs),
        "accuracy": float(((same >= 0.5) == (labels > 0.5)).mean()),
        "ece": calibration_errors(diagram)[0],
        "bins": [each._asdict() for each in diagram],
    }
    return {"reliability": figures}
