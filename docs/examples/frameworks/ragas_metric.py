"""simllm as a metric of Ragas: ragas_metric.py [PAIRS]. It asks no language model.

Ragas sends usage data to its makers unless RAGAS_DO_NOT_TRACK=true is set.
"""

import json
import sys
from functools import cache
from pathlib import Path

from ragas.metrics import MetricResult, numeric_metric

from simllm import SimLLM

load = cache(SimLLM)
DATA = Path(__file__).parents[1] / "data"


@numeric_metric(name="simllm", allowed_values=(-1.0, 1.0))
def simllm_score(response: str, reference: str) -> MetricResult:
    """Score a response against its reference; the reason has the signature."""
    scores = load().score([response], [reference])
    return MetricResult(value=float(scores.values[0]), reason=scores.signature)


if __name__ == "__main__":
    file = Path(sys.argv[1]) if sys.argv[1:] else DATA / "pairs.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    results = simllm_score.batch_score([{"response": row["pred"], "reference": row["gold"]} for row in rows])
    for row, result in zip(rows, results, strict=True):
        print(f"{row['key']}\t{result.value:.4f}")
