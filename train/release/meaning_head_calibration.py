"""Calibration of the meaning head on one half of held-out text pairs, and its test on the other half.

Calibration makes the probabilities agree with how often two texts do have the same meaning.
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
# Labelled pairs of each label.
_FEWEST = 20


def meaning_test_pairs(comments: Path, labelled: Path, items: str | None) -> list[MeaningPair]:
    """Collect held-out pairs in random order, half of them with the same meaning.

    They come from `labelled`, the output of `train.data.hold_out_pairs`; from the lines of `comments`, of
    which rules make as many pairs; and from the meaning items (None: none), four of each.
    """
    random = np.random.default_rng(_SEED)
    pairs = []
    for where, row in read_json_lines.objects(labelled):
        first, second, label, name = (
            read_json_lines.text_under(row, key, where) for key in ("a", "b", "label", "set")
        )
        # In most data sets, the second text of an "entailment" may say less than the first. In breaking_nli,
        # the two texts differ only by a synonym.
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
    # Equally many pairs of both labels: a calibrated probability depends on how frequent each label is.
    chosen = [group[i] for group in by_label for i in random.permutation(len(group))[:count]]
    return [chosen[i] for i in random.permutation(len(chosen))]


def calibrate_meaning(folder: Path, held_out: Sequence[MeaningPair], source: str) -> None:
    """Calibrate the probabilities of the meaning head, and write the result into the model folder.

    `held_out` comes from `meaning_test_pairs`; `source` is the name of its file of labelled pairs.
    """
    OutputFolder(folder).check_addition(saved_model.INFO)
    metric = SimLLM(folder)
    info = metric.model.info
    if info.meaning is None:
        raise InputError(f"{folder}: has no meaning head to calibrate")
    # `measure_reliability` uses the other half.
    pairs = held_out[::2]
    same = metric.score([pair.first for pair in pairs], [pair.second for pair in pairs]).on("same")
    # The logit of 0 or 1 is infinite.
    same = same.clip(1e-6, 1 - 1e-6)
    # The probabilities have an earlier calibration, which is undone before the new fit.
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
    """Measure how well the probabilities agree with the labels of pairs that did not calibrate them.

    The key "reliability" has the number of pairs, the accuracy, the expected calibration error and the bins
    of the reliability diagram; it is missing without a meaning head or without data.
    """
    if not (learned.head and config.test_comments and config.labelled):
        return {}
    # Drawn with the same seed as for `calibrate_meaning`, which uses the other half.
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
