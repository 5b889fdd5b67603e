"""Search for changing words in a few pairs of the score report."""

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
    """Find the changing words of the 10 to 25 changed pairs with the highest scores: `result[column][i]`.

    A pair that is changed in two columns counts as two pairs. Pairs with a text of more than 30 words or 64
    tokens are skipped, and so are columns of metrics that cannot be explained word by word.
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
        # Only the chosen pairs are tokenized: the count of words is cheap and has left out nearly all long
        # texts.
        inputs = metric.tokenize([text for pair in texts.values() for text in pair]).inputs
        short = [len(windows) == 1 and len(windows[0]) <= _LONGEST_TOKENS for windows in inputs]
        texts = {i: pair for k, (i, pair) in enumerate(texts.items()) if all(short[2 * k : 2 * k + 2])}
        if texts:
            explanations = explain_pairs(metric, list(texts.values()))
            found[name] = {i: own.changing_words for i, own in zip(texts, explanations, strict=True)}
    return found


def number_of_explained(n: int) -> int:
    """Return how many pairs of a report with n pairs are explained: n / 200, but from 10 to 25."""
    # Few, because explaining one pair takes about as long as scoring 30 pairs. The report's table shows 25
    # pairs at a time.
    return min(max(10, n // 200), 25)


def _texts(scored: ScoredPairs, name: str, i: int) -> tuple[str, str]:
    """Return the candidate, from the system `name`, and the reference of pair `i`."""
    return scored.candidates[name if scored.has_systems else ""][i], scored.references[i]
