"""Score files of pairs with Hugging Face datasets: score_with_datasets.py FILES FILE."""

import sys
from functools import cache
from typing import Any

from datasets import load_dataset

from simllm import SimLLM

load = cache(SimLLM)  # is called in the worker processes only


def score(chunk: dict[str, Any]) -> dict[str, Any]:
    """Score the pairs of a row of `chunks`."""
    (ids,), (candidates,), (references,) = chunk["id"], chunk["candidate"], chunk["reference"]
    return {"id": ids, "score": load().score(candidates, references).values}


pairs = load_dataset("json", data_files=sys.argv[1], split="train")
chunks = pairs.batch(1024)  # a row of `chunks` holds 1,024 pairs
scored = chunks.map(score, batched=True, batch_size=1, num_proc=2, remove_columns=chunks.column_names)
scored.to_parquet(sys.argv[2])
