"""Two measurements on code comments for a model card: a retrieval task, and the scores of random pairs.

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
    """Measure a model on code comments: retrieval of descriptions, and scores of random pairs.

    A comment's first sentence is its summary, and the rest is its description.

    - Retrieval: the model must find the description that belongs to a summary. The comments come from the
      file `config.unseen_comments` if it is given. Otherwise, they are the held-out comments of
      `config.comments`. For each programming language, at most `config.comments_per_language` of them are
      chosen at random. Each summary is compared with the descriptions of all chosen comments in its language.
    - Random pairs: the model scores up to `config.random_pairs` random pairs of summaries from the
      held-out comments of `config.comments`.

    Args:
        metric: The model.
        config: The comments, and how many to use.

    Returns:
        A dictionary of JSON values:

        - "languages": for each programming language, the result of `_measure_retrieval`;
        - "unseen": whether the retrieval used `config.unseen_comments`;
        - "random_pairs": the result of `_score_random_pairs`.

    Raises:
        InputError: A file cannot be read, or fewer than two of its comments have a description.
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
    """Return how well a model finds the description of each summary among the descriptions of all summaries.

    Args:
        metric: The model.
        pairs: The summary and the description of each comment.

    Returns:
        The number of pairs ("pairs"), the share of summaries with their own description on rank 1 ("first"),
        and the mean reciprocal rank ("mrr").
    """
    summaries, descriptions = (metric.embed(list(texts)) for texts in zip(*pairs, strict=True))
    cosines = token_matching.cosines(summaries, descriptions)
    rank = (cosines > cosines.diagonal()[:, None]).sum(axis=1) + 1
    return {"pairs": len(pairs), "first": float((rank == 1).mean()), "mrr": float((1 / rank).mean())}


def _score_random_pairs(metric: SimLLM, texts: list[str], number: int) -> dict[str, float]:
    """Return statistics of the scores of random pairs of texts.

    Args:
        metric: The model.
        texts: The texts, each once.
        number: The number of pairs to draw. If a text is paired with itself, the pair is dropped and not
            replaced.

    Returns:
        The mean ("mean"), the median ("median"), and the 5% and 95% quantiles ("p5", "p95").
    """
    a, b = np.random.default_rng(_SEED).integers(len(texts), size=(2, number))
    different = a != b
    values = metric.score([texts[i] for i in a[different]], [texts[i] for i in b[different]]).values
    quantiles = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"mean": float(values.mean()), **dict(zip(("p5", "median", "p95"), quantiles, strict=True))}


def _read_summaries_and_descriptions(
    comments: Path, splits: tuple[str, ...]
) -> dict[str, list[tuple[str, str]]]:
    """Read the summary and the description of each comment in the corpus, by programming language.

    A comment's first sentence is its summary, and the rest is its description. Comments with a description of
    fewer than four words are left out.

    Args:
        comments: The comments.jsonl of a corpus.
        splits: The splits to read: "train", "test", or both.

    Returns:
        For each programming language, a list of pairs (summary, description).

    Raises:
        InputError: The file cannot be read, or fewer than two comments remain.
    """
    read: dict[str, list[tuple[str, str]]] = {}
    for where, row in read_json_lines.objects(comments):
        row = {"description": "", "language": "unknown", **row}
        summary, split, description, language = (
            read_json_lines.text_under(row, name, where)
            for name in ("summary", "split", "description", "language")
        )
        rest = description.removeprefix(summary).strip()
        if split in splits and len(rest.split()) > 3:
            read.setdefault(language, []).append((summary, rest))
    if sum(map(len, read.values())) < 2:
        held_out = "held-out " if splits == ("test",) else ""
        raise InputError(f"{comments}: fewer than two {held_out}comments with a description")
    return read
