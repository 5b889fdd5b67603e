"""Search for the words that make a candidate differ in meaning from its reference.

The report shows these words for a few pairs of similar texts that probably differ in meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simllm.analysis.explanation import explain_pairs
from simllm.analysis.run_report.scored_run import ScoredRun
from simllm.analysis.run_report.shown_pairs import LONGEST_EXPLAINED, number_of_explained
from simllm.metric import SimLLM

_LONGEST_TOKENS = 64  # guards against words of very many tokens


def find_changing_words(metrics: Mapping[str, SimLLM], run: ScoredRun) -> dict[str, dict[int, list[str]]]:
    """Find the words that make a candidate differ in meaning from its reference, for a few pairs of a report.

    The words are found in the same way as by `simllm explain`, which is slow. Therefore only pairs that
    `run.changed` marks are searched: their texts are similar, but probably differ in meaning. At most
    `number_of_explained(n)` marked pairs (10 to 25) are searched, those with the highest scores. Pairs with a
    text of more than 30 words or 64 tokens are skipped.

    `run.changed` has a column for each metric or system. A pair that is marked in two columns is searched
    twice, and counts as two pairs.

    Args:
        metrics: A dict from the name of a column to the metric that computed its scores. A column is left out
            if it is not in `run.changed`, or if the metric's scores cannot be explained word by word.
        run: n scored pairs.

    Returns:
        A dict from the name of each remaining column to another dict, which maps the index of each searched
        pair to a list of the words found. The list may be empty.
    """
    usable = {
        name: metric
        for name, metric in metrics.items()
        if name in run.changed and (metric.pooling, metric.similarity) == ("mean", "cosine")
    }
    found: dict[str, dict[int, list[str]]] = {name: {} for name in usable}
    flagged = np.flatnonzero(run.any_changed)
    chosen = [
        (name, i)
        for i in flagged[np.argsort(-run.ranking[flagged], kind="stable")].tolist()
        for name in usable
        if run.changed[name][i]
        and all(len(text.split()) <= LONGEST_EXPLAINED for text in _texts(run, name, i))
    ][: number_of_explained(len(run))]
    for name, metric in usable.items():
        texts = {i: _texts(run, name, i) for column, i in chosen if column == name}
        inputs = metric.tokenize([text for pair in texts.values() for text in pair]).inputs
        short = [len(windows) == 1 and len(windows[0]) <= _LONGEST_TOKENS for windows in inputs]
        texts = {i: pair for k, (i, pair) in enumerate(texts.items()) if all(short[2 * k : 2 * k + 2])}
        if texts:
            explanations = explain_pairs(metric, list(texts.values()))
            found[name] = {i: own.changing_words for i, own in zip(texts, explanations, strict=True)}
    return found


def _texts(run: ScoredRun, name: str, i: int) -> tuple[str, str]:
    """Return the candidate and the reference of pair `i` (counted from 0).

    Args:
        run: The scored pairs of one or several systems (sources of candidates).
        name: The name of the system that wrote the candidate; ignored if there is only one system.
        i: The index of the pair.
    """
    return run.candidates[name if run.has_systems else ""][i], run.references[i]
