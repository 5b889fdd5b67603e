"""The judge of summaries of code, which accepts a summary if a metric gives it a high enough score."""

from __future__ import annotations

import hashlib
import json
import math
import threading

from simllm.errors import InputError
from simllm.llm.records import KeptValues
from simllm.metrics.metric_interface import Example, Metric
from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judge_interface import Judged
from simllm.repair.round_messages import Feedback


class SummaryJudge:
    """Judge that scores summaries of code with a metric, which compares them with reference summaries.

    Args:
        metric: The metric.
        bar: The lowest score with which a summary is accepted.
        scores: The cache of scores.
    """

    def __init__(self, metric: Metric, bar: float, scores: KeptValues) -> None:
        self._metric, self._bar, self._scores = metric, bar, scores
        self._lock = threading.Lock()  # a metric need not allow threads

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Score a model's summary of code with the metric, and accept a summary with a high enough score.

        The metric compares the summary with the reference summary of the same code.

        Args:
            item: The code that the model summarizes, with the reference summary.
            reply: The text of the model's reply. The whole reply is the summary.
        """
        return self._judge(item, reply.strip())

    def judge_code(self, item: RepairItem) -> Judged:
        """Return the judgement "not accepted", without a score, because this judge cannot score code.

        Every judge has this method. The judge of programs uses it to find the tests that a program fails.
        """
        return Judged(None, False)

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback for the model: the score of its summary, and the lowest score that is accepted."""
        return Feedback(score=judged.score, bar=self._bar)

    def _judge(self, item: RepairItem, summary: str) -> Judged:
        content = [self._metric.signature, summary, item.reference, item.code, item.language]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        score = self._scores.get(key, lambda: self._score(item, summary))
        if not (score is None or isinstance(score, float | int)) or isinstance(score, bool):
            raise InputError(f"verdicts.jsonl: a stored score must be a number, not {str(score)[:40]}")
        return Judged(summary, score is not None and score >= self._bar, score=score)

    def _score(self, item: RepairItem, summary: str) -> float | None:
        example = Example(summary, item.reference or "", item.code, item.language)
        with self._lock:
            score = float(self._metric.score([example]).values[0])
        return score if math.isfinite(score) else None
