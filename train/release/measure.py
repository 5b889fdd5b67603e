"""What a model's card says of it: agreement with people, meaning over words, languages, sanity.

    python -m train.release.measure runs/contrastive/model -o figures.json
    python -m train.release.measure runs/mine/model comments=runs/mine/corpus/comments.jsonl

Which sets are read stands in configs/measure.yaml, or in another file after `--config`.
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
from simllm.evaluation import contrast
from simllm.evaluation.human_correlation import correlate
from simllm.io import files
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
    return run_tool(lambda: _write(options))


def _write(options: argparse.Namespace) -> None:
    config = configs.load(MeasureConfig, options.config, options.overrides)
    if options.output:
        inputs = [options.config, Path(config.comments), *map(Path, config.rated)]
        check_output(options.output, options.overwrite, inputs)
    text = json.dumps(measure(options.model, config), indent=1) + "\n"
    if options.output:
        files.write(options.output, text)
    else:
        sys.stdout.write(text)


def measure(model: Path, config: MeasureConfig) -> dict[str, Any]:
    """All figures of a model, with those of the baselines beside them."""
    names = ("simllm", *config.baselines)
    found, missing = registry.load_all(names, model)
    if missing:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in missing.items()))
    triples = contrast.cleaned(contrast.load())
    return {
        "signature": found[0].signature,
        "spearman": {named(Path(file)): agreement(Path(file), names, model) for file in config.rated},
        "contrast": {short(metric.name): by_kind(metric, triples) for metric in found},
        **sanity(SimLLM(model), config),
    }


def named(file: Path) -> str:
    """A set's name: sets have files of the same name, such as test."""
    return f"{file.parent.name}/{file.stem}"


def short(metric: str) -> str:
    """A metric's name without what it was made from."""
    return metric.partition("=")[0]


def agreement(file: Path, names: Sequence[str], model: Path) -> dict[str, Any]:
    """Each metric's correlation with the ratings of a file, with its interval."""
    rows = correlate(file, names, model).rows
    found = {short(row.metric): {"rho": row.spearman, "low": row.low, "high": row.high} for row in rows}
    return {"pairs": rows[0].n, **found}


def by_kind(metric: Metric, triples: contrast.Triples) -> dict[str, dict[str, float]]:
    """The share of triples that a metric gets right: of each form, all together and by kind."""
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
    """Scores of unrelated comments, and by language: is a summary nearest to its own description?

    The comments are those that were held out. A description is what follows its
    first sentence, the summary; one language's summaries look for theirs among as many.
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
