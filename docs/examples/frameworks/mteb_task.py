"""Rated summaries as a task of MTEB, and simllm's encoder as its model: mteb_task.py [RATINGS]."""

import json
import sys
from pathlib import Path
from typing import Any

import mteb
from datasets import Dataset
from mteb.abstasks import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

from simllm.analysis.frameworks import MtebModel

DATA = Path(__file__).parents[1] / "data"


class RatedSummaries(AbsTaskSTS):
    """Pairs of summaries that people rated from 1 to 5."""

    metadata = TaskMetadata(
        name="RatedSummaries",
        description="Pairs of summaries that people rated.",
        type="STS",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="spearman",
        dataset={"path": "local", "revision": "1"},
    )
    min_score = 1
    max_score = 5
    file = DATA / "ratings.jsonl"

    def load_data(self, *args: Any, **options: Any) -> None:
        """Read the pairs and the mean of their ratings."""
        rows = [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]
        columns = {
            "sentence1": [row["candidate"] for row in rows],
            "sentence2": [row["reference"] for row in rows],
            "score": [sum(row["ratings"]) / len(row["ratings"]) for row in rows],
        }
        self.dataset, self.data_loaded = {"test": Dataset.from_dict(columns)}, True


if __name__ == "__main__":
    if sys.argv[1:]:
        RatedSummaries.file = Path(sys.argv[1])
    # `cache=None` keeps the results of this made-up task out of ~/.cache/mteb.
    done = mteb.evaluate(MtebModel(), [RatedSummaries()], cache=None, show_progress_bar=False)
    print(f"spearman {done.task_results[0].get_score():.3f}")
    print(done.model_revision)
