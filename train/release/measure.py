"""Figures for the model card: agreement with people, the contrast set, retrieval by language, random pairs.

    python -m train.release.measure runs/contrastive/model -o figures.json
    python -m train.release.measure runs/mine/model comments=runs/mine/corpus/comments.jsonl

The sets are named in configs/measure.yaml, or in another file after `--config`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation import contrast, ratings
from simllm.evaluation.human_correlation import cleaned, correlate_all
from simllm.io import files, tables
from simllm.metric import SimLLM
from simllm.metrics import registry
from simllm.metrics.protocol import Metric, pair_scores
from simllm.scoring import token_matching
from train.runtime import config as configs
from train.runtime.tool_command import add_overwrite_option, check_output, run_tool

_SEED = 1


@dataclass(frozen=True, kw_only=True)
class MeasureConfig:
    """The sets that a model is measured on."""

    rated: tuple[str, ...]
    baselines: tuple[str, ...]  # as `simllm evaluate --metrics` names them
    comments: str  # a corpus's comments.jsonl, of which the held-out ones are taken
    comments_per_language: int
    random_pairs: int


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.measure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="a model folder")
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", default=[], help="such as rated=[my.jsonl]"
    )
    parser.add_argument("--config", type=Path, default=Path("configs/measure.yaml"), help="%(default)s")
    parser.add_argument("-o", "--output", type=Path, help="JSON to write; default: standard output")
    add_overwrite_option(parser)
    options = parser.parse_args()
    return run_tool(lambda: _write(**vars(options)))


def _write(model: Path, overrides: list[str], config: Path, output: Path | None, overwrite: bool) -> None:
    loaded = configs.load(MeasureConfig, config, overrides)
    if output:
        check_output(output, overwrite, [config, Path(loaded.comments), *map(Path, loaded.rated)])
    tables.show(json.dumps(measure(model, loaded), indent=1) + "\n", output)


def measure(model: Path, config: MeasureConfig) -> dict[str, Any]:
    """Compute all figures of a model, and those of the baselines; the model is loaded once."""
    learned = SimLLM(model)
    metrics = [registry.of_model(learned.name, learned), *map(registry.load, config.baselines)]
    triples = contrast.cleaned(contrast.load())
    return {
        "signature": learned.signature,
        "spearman": {named(Path(file)): agreement(Path(file), metrics) for file in config.rated},
        "contrast": {short(metric.name): by_kind(metric, triples) for metric in metrics},
        **sanity(learned, config),
    }


def named(file: Path) -> str:
    """Return the name of a rated set, with its folder: several sets have a file called test."""
    return f"{file.parent.name}/{file.stem}"


def short(metric: str) -> str:
    """Return a metric's name without its argument."""
    return metric.partition("=")[0]


def agreement(file: Path, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Correlate each metric with the ratings of a file, with 95% intervals."""
    result = correlate_all(cleaned(ratings.load(file)), metrics)
    if result.missing:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in result.missing.items()))
    found = {
        short(row.metric): {"rho": row.spearman, "low": row.low, "high": row.high} for row in result.rows
    }
    return {"pairs": result.rows[0].n, **found}


def by_kind(metric: Metric, triples: contrast.Triples) -> dict[str, dict[str, float]]:
    """Return the share of triples that a metric gets right, for each form: of all triples and by kind."""
    won, forms, kinds = (
        contrast.wins(partial(pair_scores, metric), triples),
        np.array(triples.forms),
        np.array(triples.kinds),
    )
    return {
        form: {
            "all": float(won[forms == form].mean()),
            **contrast.by(list(kinds[forms == form]), won[forms == form]),
        }
        for form in dict.fromkeys(triples.forms)
    }


def sanity(metric: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure retrieval of descriptions by language, and the scores of random pairs, on held-out comments.

    A summary is the first sentence of a comment, and a description is the rest. Each summary is
    compared with the descriptions of all chosen comments of its language.
    """
    random, found = np.random.default_rng(_SEED), {}
    held_out: dict[str, list[tuple[str, str]]] = {}
    for where, row in files.objects(Path(config.comments)):
        summary, split = (files.text_under(row, name, where) for name in ("summary", "split"))
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
        found[language] = {
            "pairs": len(chosen),
            "first": float((rank == 1).mean()),
            "mrr": float((1 / rank).mean()),
        }
    summaries_ = sorted({summary for pairs in held_out.values() for summary, _ in pairs})
    a, b = random.integers(len(summaries_), size=(2, config.random_pairs))
    different = a != b
    values = metric.score([summaries_[i] for i in a[different]], [summaries_[i] for i in b[different]]).values
    quantiles = dict(
        zip(("p5", "median", "p95"), np.quantile(values, [0.05, 0.5, 0.95]).tolist(), strict=True)
    )
    return {"languages": found, "random_pairs": {"mean": float(values.mean()), **quantiles}}


if __name__ == "__main__":
    sys.exit(main())
