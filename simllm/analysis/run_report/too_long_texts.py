"""Search for the text pairs of a report in which a text is longer than the model's longest input."""

from __future__ import annotations

from collections.abc import Mapping

from simllm.analysis.run_report.scored_run import ScoredRun
from simllm.metric import SimLLM

_CHUNK = 10_000  # texts that are tokenized at once


def find_long_texts(metrics: Mapping[str, SimLLM], run: ScoredRun) -> list[int]:
    """Find the pairs with a text that is longer than the longest input of a metric's model.

    Args:
        metrics: A dict from the names of columns of scores to the metrics that computed them.
        run: n scored pairs.

    Returns:
        The indices of the pairs, increasing.
    """
    found: set[int] = set()
    for metric in {id(metric): metric for metric in metrics.values()}.values():
        for texts in (run.references, *run.candidates.values()):
            for start in range(0, len(texts), _CHUNK):
                long = metric.tokenize(list(texts[start : start + _CHUNK])).long
                found.update(start + i for i in long)
    return sorted(found)
