"""Figures for a model card on held-out code comments: retrieval of descriptions, scores of random pairs."""

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
    """Measure a model on held-out code comments: retrieval of descriptions, and scores of random pairs.

    A comment's first sentence is its summary, and the rest is its description. Comments with a description of
    fewer than four words are left out. For each programming language, `config.comments_per_language` comments
    are chosen at random, or all if there are fewer. Each summary is compared with the descriptions of all
    chosen comments in the same language.

    Args:
        metric: The model.
        config: The comments, and how many to use.

    Returns:
        Under "languages", the retrieval figures of each programming language: the number of chosen
        comments ("pairs"), the share of summaries with their own description on rank 1 ("first"), and the
        mean reciprocal rank ("mrr"). Under "random_pairs", statistics of the scores of random pairs of
        summaries: "mean", "median", and the 5% and 95% quantiles ("p5", "p95").

    Raises:
        InputError: Fewer than two held-out comments have a description.
    """
    random, languages = np.random.default_rng(_SEED), {}
    held_out: dict[str, list[tuple[str, str]]] = {}
    for where, row in read_json_lines.objects(Path(config.comments)):
        summary, split = (read_json_lines.text_under(row, name, where) for name in ("summary", "split"))
        rest = row.get("description", "").removeprefix(summary).strip()
        if split == "test" and len(rest.split()) > 3:
            held_out.setdefault(row.get("language", "unknown"), []).append((summary, rest))
    if sum(map(len, held_out.values())) < 2:
        raise InputError(f"{config.comments}: fewer than two held-out comments with a description")
    for language, pairs in sorted(held_out.items()):
        chosen = random.permutation(len(pairs))[: config.comments_per_language]
        summaries, rests = (metric.embed([pairs[i][side] for i in chosen]) for side in (0, 1))
        cosines = token_matching.cosines(summaries, rests)
        rank = (cosines > cosines.diagonal()[:, None]).sum(axis=1) + 1
        languages[language] = {
            "pairs": len(chosen),
            "first": float((rank == 1).mean()),
            "mrr": float((1 / rank).mean()),
        }
    texts = sorted({summary for pairs in held_out.values() for summary, _ in pairs})
    a, b = random.integers(len(texts), size=(2, config.random_pairs))
    different = a != b
    values = metric.score([texts[i] for i in a[different]], [texts[i] for i in b[different]]).values
    quantiles = dict(
        zip(("p5", "median", "p95"), np.quantile(values, [0.05, 0.5, 0.95]).tolist(), strict=True)
    )
    return {"languages": languages, "random_pairs": {"mean": float(values.mean()), **quantiles}}
