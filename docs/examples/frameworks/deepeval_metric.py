"""simllm as a metric of DeepEval: deepeval_metric.py [PAIRS]. It asks no language model.

DeepEval sends usage data to its makers unless DEEPEVAL_TELEMETRY_OPT_OUT=1 is set.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from simllm import SimLLM

load = cache(SimLLM)
DATA = Path(__file__).parents[1] / "data"


class SimLLMMetric(BaseMetric):
    """Metric that compares the meaning of the actual and the expected output."""

    def __init__(self, threshold: float = 0.5, scale: str = "same") -> None:
        """Take the smallest value that passes, on a scale of simllm: see `Scores.on`."""
        self.threshold, self.scale = threshold, scale

    def measure(self, test_case: LLMTestCase, *args: Any, **options: Any) -> float:
        """Score a test case; the reason has score and signature."""
        scores = load().score([test_case.actual_output], [test_case.expected_output])
        self.score = float(scores.on(self.scale)[0])
        self.success = self.score >= self.threshold
        self.reason = f"score {scores.values[0]:.4f}, {scores.signature}"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **options: Any) -> float:
        """Score a test case."""
        return self.measure(test_case)

    def is_successful(self) -> bool:
        """Return whether the last test case passed."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "simllm"


if __name__ == "__main__":
    file = Path(sys.argv[1]) if sys.argv[1:] else DATA / "pairs.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    cases = [
        LLMTestCase(input=row["key"], actual_output=row["pred"], expected_output=row["gold"]) for row in rows
    ]
    quiet = DisplayConfig(show_indicator=False, print_results=False)
    # One after the other: the metric computes and never waits, so threads gain nothing.
    done = evaluate(cases, [SimLLMMetric()], async_config=AsyncConfig(run_async=False), display_config=quiet)
    for result in done.test_results:
        (found,) = result.metrics_data
        print(f"{result.input}\t{found.score:.4f}\t{'passed' if found.success else 'failed'}")
