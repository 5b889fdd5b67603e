"""Two measurements on code comments: a retrieval task, and the scores of random pairs.

A comment's first sentence is its summary, and the rest is its description. In the retrieval task, the model
must find the description that belongs to a summary. The random pairs are pairs of summaries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.io import read_json_lines
from simllm.metric import SimLLM
from simllm.scoring import token_matching
from train.release.measurement_config import MeasureConfig

_SEED = 1


def measure_comments(metric: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure retrieval by programming language ("languages"), and the scores of random pairs
    ("random_pairs").

    The retrieval uses `unseen_comments` of the configuration if given ("unseen"), or else the held-out
    comments of `comments`, as the random pairs do.
    """
    held_out = _read_summaries_and_descriptions(Path(config.comments), ("test",))
    compared = held_out
    if config.unseen_comments:
        compared = _read_summaries_and_descriptions(Path(config.unseen_comments), ("train", "test"))
    random = np.random.default_rng(_SEED)
    languages = {}
    for language, pairs in sorted(compared.items()):
        chosen = random.permutation(len(pairs))[: config.comments_per_language]
        languages[language] = _measure_retrieval(metric, [pairs[number] for number in chosen])
    summaries = sorted({summary for pairs in held_out.values() for summary, _ in pairs})
    return {
        "languages": languages,
        "unseen": bool(config.unseen_comments),
        "random_pairs": _score_random_pairs(metric, summaries, config.random_pairs),
    }


def _measure_retrieval(metric: SimLLM, pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Return the number of pairs, the share of summaries with their description on rank 1, and the MRR."""
    summaries, descriptions = (metric.embed(list(texts)) for texts in zip(*pairs, strict=True))
    cosines = token_matching.cosines(summaries, descriptions)
    # Ties count for the model: only a higher cosine pushes the own description down.
    rank = (cosines > cosines.diagonal()[:, None]).sum(axis=1) + 1
    return {"pairs": len(pairs), "first": float((rank == 1).mean()), "mrr": float((1 / rank).mean())}


def _score_random_pairs(metric: SimLLM, texts: list[str], number: int) -> dict[str, float]:
    """Return the mean, the median, and the 5% and 95% quantiles of the scores of random pairs."""
    a, b = np.random.default_rng(_SEED).integers(len(texts), size=(2, number))
    # Pairs of a text with itself are dropped, not replaced.
    different = a != b
    values = metric.score([texts[i] for i in a[different]], [texts[i] for i in b[different]]).values
    quantiles = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"mean": float(values.mean()), **dict(zip(("p5", "median", "p95"), quantiles, strict=True))}


def _read_summaries_and_descriptions(
    comments: Path, splits: tuple[str, ...]
) -> dict[str, list[tuple[str, str]]]:
    """Read (summary, description of four or more words) of the splits, by programming language."""
    read: dict[str, list[tuple[str, str]]] = {}
    for where, row in read_json_lines.objects(comments):
        row = {"description": "", "language": "unknown", **row}
        summary, split, description, language = (
            read_json_lines.text_under(row, name, where)
            for name in ("summary", "split", "description", "language")
        )
        # A description repeats the summary as its first sentence, which would give the answer away.
        rest = description.removeprefix(summary).strip()
        if split in splits and len(rest.split()) > 3:
            read.setdefault(language, []).append((summary, rest))
    if sum(map(len, read.values())) < 2:
        held_out = "held-out " if splits == ("test",) else ""
        raise InputError(f"{comments}: fewer than two {held_out}comments with a description")
    return read
