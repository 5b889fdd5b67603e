"""The judge of summaries, which accepts a summary if a metric gives it a high enough score."""

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
    """Judge that scores summaries with a metric, against the reference summary of the item.

    `bar` is the lowest score of an accepted summary; `scores` is the cache of scores.
    """

    def __init__(self, metric: Metric, bar: float, scores: KeptValues) -> None:
        self._metric, self._bar, self._scores = metric, bar, scores
        self._lock = threading.Lock()  # a metric need not allow threads

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Score a reply, all of which is the summary."""
        return self._judge(item, reply.strip())

    def judge_code(self, item: RepairItem) -> Judged:
        """Return the judgement "not accepted"; the method exists only for the interface."""
        return Judged(None, False)

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return the score of the summary, and the lowest score that is accepted."""
        return Feedback(score=judged.score, bar=self._bar)

    def _judge(self, item: RepairItem, summary: str) -> Judged:
        content = [self._metric.signature, summary, item.reference, item.code, item.language]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        score = self._scores.get(key, lambda: self._score(item, summary))
        # The file may have been edited; True would count as the score 1.
        if not (score is None or isinstance(score, float | int)) or isinstance(score, bool):
            raise InputError(f"verdicts.jsonl: a stored score must be a number, not {str(score)[:40]}")
        return Judged(summary, score is not None and score >= self._bar, score=score)

    def _score(self, item: RepairItem, summary: str) -> float | None:
        example = Example(summary, item.reference or "", item.code, item.language)
        with self._lock:
            score = float(self._metric.score([example]).values[0])
        return score if math.isfinite(score) else None
