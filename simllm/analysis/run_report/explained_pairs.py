"""Words that changed the meaning, for the pairs of a report whose meaning may have changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simllm.analysis.explanation import explain_pairs
from simllm.analysis.run_report.pair_sample import LONGEST_EXPLAINED, number_of_explained
from simllm.analysis.run_report.scored_run import ScoredRun
from simllm.metric import SimLLM

_LONGEST_TOKENS = 64  # guards against words of very many tokens


def find_changing_words(metrics: Mapping[str, SimLLM], run: ScoredRun) -> dict[str, dict[int, list[str]]]:
    """Find the words that changed the meaning, as `simllm explain` does, for a few pairs of a report.

    The words are searched for in pairs whose meaning may have changed, as `run.changed` says. Pairs with high
    scores come first. Pairs with a text of more than 30 words are skipped. Because the search is slow, it
    stops after `number_of_explained(n)` pairs, which is 10 to 25. A pair counts once for each column.

    Args:
        metrics: A dict from the name of a column of scores to the metric that computed the scores. A column
            is ignored if it is not in `run.changed`, or if its scores cannot be explained word by word.
        run: n scored pairs.

    Returns:
        A dict from the name of each column that is not ignored to a dict from the index of a pair to the
        words that changed its meaning. The list of words is empty if no single word changed the meaning.
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
        run: The scored pairs.
        name: The column of `run.scores`. With several systems, this is the system that wrote the candidate.
        i: The index of the pair.
    """
    return run.candidates[name if run.has_systems else ""][i], run.references[i]
