"""Search for changing words: the words that make a candidate differ in meaning from its reference.

The score report searches only a few of its text pairs, because the search is slow. These pairs are called
explained pairs. The two texts of such a pair are similar, but probably differ in meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simllm.analysis.explanation import explain_pairs
from simllm.analysis.score_report.scored_pairs import ScoredPairs
from simllm.metric import SimLLM

LONGEST_EXPLAINED = 30  # words of a text that is explained; the cost grows with the number of words
_LONGEST_TOKENS = 64  # guards against words of very many tokens


def explain_changed_pairs(
    metrics: Mapping[str, SimLLM], scored: ScoredPairs
) -> dict[str, dict[int, list[str]]]:
    """Find the words that make a candidate differ in meaning from its reference, for a few pairs of a report.

    The search is slow. Therefore a pair is searched only if `scored.changed` marks it: its two texts are
    similar, but probably differ in meaning. If many pairs are marked, only the 10 to 25 pairs with the
    highest scores are searched (see `number_of_explained`). Pairs with a text of more than 30 words or 64
    tokens are skipped.

    Each column of scores (a metric or a system) has its own marks. A pair that is marked in two columns is
    searched twice, and counts as two pairs.

    Args:
        metrics: A dict from the name of a column to the metric that computed its scores. A column is ignored
            if it is not in `scored.changed`, or if the metric's scores cannot be explained word by word.
        scored: n scored pairs.

    Returns:
        Nested dicts: `result[column][i]` is the list of words found in pair i, which may be empty. Columns
        that are ignored, and pairs that are not searched, have no entry.
    """
    usable = {
        name: metric
        for name, metric in metrics.items()
        if name in scored.changed and (metric.pooling, metric.similarity) == ("mean", "cosine")
    }
    found: dict[str, dict[int, list[str]]] = {name: {} for name in usable}
    flagged = np.flatnonzero(scored.any_changed)
    chosen = [
        (name, i)
        for i in flagged[np.argsort(-scored.ranking[flagged], kind="stable")].tolist()
        for name in usable
        if scored.changed[name][i]
        and all(len(text.split()) <= LONGEST_EXPLAINED for text in _texts(scored, name, i))
    ][: number_of_explained(len(scored))]
    for name, metric in usable.items():
        texts = {i: _texts(scored, name, i) for column, i in chosen if column == name}
        inputs = metric.tokenize([text for pair in texts.values() for text in pair]).inputs
        short = [len(windows) == 1 and len(windows[0]) <= _LONGEST_TOKENS for windows in inputs]
        texts = {i: pair for k, (i, pair) in enumerate(texts.items()) if all(short[2 * k : 2 * k + 2])}
        if texts:
            explanations = explain_pairs(metric, list(texts.values()))
            found[name] = {i: own.changing_words for i, own in zip(texts, explanations, strict=True)}
    return found


def number_of_explained(n: int) -> int:
    """Return the number of text pairs in which a report searches for words that change the meaning.

    Such words make the candidate differ in meaning from the reference. The number is n / 200, rounded down,
    but at least 10 and at most 25 (the report's table shows 25 pairs at a time). The number is small because
    searching one pair takes about as long as scoring 30 pairs.

    Args:
        n: The number of pairs in the report.
    """
    return min(max(10, n // 200), 25)


def _texts(scored: ScoredPairs, name: str, i: int) -> tuple[str, str]:
    """Return the candidate and the reference of pair `i` (counted from 0).

    Args:
        scored: The scored pairs of one or several systems (sources of candidates).
        name: The name of the system that wrote the candidate; ignored if there is only one system.
        i: The index of the pair.
    """
    return scored.candidates[name if scored.has_systems else ""][i], scored.references[i]
