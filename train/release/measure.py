"""Measure a model for its model card, and write the figures as JSON.

    python -m train.release.measure runs/contrastive/model -o figures.json
    python -m train.release.measure runs/mine/model comments=runs/mine/corpus/comments.jsonl

The figures show the model's agreement with human ratings, how often it scores a rewording higher than a text
with another meaning, its retrieval of comments, and its scores of random pairs.
The file after `--config` names the data sets; the default is configs/measure.yaml. Arguments of the form
`key=value` replace settings of this file. In the second example, `comments` names another file of comments:
the retrieval and the random pairs then use the held-out comments in this file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation import contrast, ratings
from simllm.evaluation.human_correlation import correlate_all
from simllm.io import files, tables
from simllm.metric import SimLLM
from simllm.metrics import registry
from simllm.metrics.protocol import Metric
from simllm.perturb.summaries import lexicon
from simllm.scoring import token_matching
from simllm.stats.calibration_error import calibration_errors, reliability
from train.contrastive.meaning_items import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.release.calibrate import meaning_test_pairs
from train.release.measure_meaning import (
    contrast_accuracies,
    measure_flags,
    measure_items,
    measure_unseen_items,
    metric_name,
)
from train.runtime import config_file
from train.runtime.command_line import add_overwrite_option, check_output, run_tool

_SEED = 1


@dataclass(frozen=True, kw_only=True)
class MeasureConfig:
    """Settings for measuring a model: the data sets, and the metrics to compare with."""

    rated: tuple[str, ...]  # files of text pairs with human ratings
    baselines: tuple[str, ...]  # names of other metrics, as for `simllm evaluate --metrics`
    comments: str  # the comments.jsonl of a corpus; its held-out comments are used
    comments_per_language: int  # largest number of comments per programming language for the retrieval
    random_pairs: int  # number of random pairs of comments
    test_comments: str | None = None  # held-out comments, to test the meaning head's probabilities
    labelled: str | None = None  # held-out labelled pairs, for the same purpose
    items: str | None = None  # meaning items (file or glob pattern); those of the split "test" are used
    unseen_items: str | None = None  # meaning items that no model is trained on; all are used


def main() -> int:
    """Parse the command line, measure the model, and return the exit status."""
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
    options = parser.parse_intermixed_args()
    return run_tool(lambda: _write(**vars(options)))


def _write(model: Path, overrides: list[str], config: Path, output: Path | None, overwrite: bool) -> None:
    """Measure a model and write the figures as JSON.

    Args:
        model: The model folder.
        overrides: `key=value` items that change the configuration.
        config: A YAML file with the keys of `MeasureConfig`.
        output: The file to write; None: standard output.
        overwrite: Whether an existing output file may be replaced.
    """
    loaded = config_file.load(MeasureConfig, config, overrides)
    if output:
        check_output(output, overwrite, [config, Path(loaded.comments), *map(Path, loaded.rated)])
    tables.show(json.dumps(measure(model, loaded), indent=1) + "\n", output)


def measure(model: Path, config: MeasureConfig) -> dict[str, Any]:
    """Measure a model and the baselines (other metrics) on all data sets.

    Args:
        model: The model folder.
        config: The data sets and the baselines.

    Returns:
        A dictionary of JSON values:

        - "signature": a text with everything that can change the model's scores, such as the model's hash;
        - "spearman": for each rated data set, the result of `correlate_metrics`;
        - "contrast": for each metric, the result of `contrast_accuracies`;
        - "items", "flags" and "unseen_items": the results of `measure_items`, `measure_flags` and
          `measure_unseen_items`;
        - the entries of the dictionaries that `measure_reliability` and `measure_comments` return:
          reliability of the meaning head, and results on code comments.

    Raises:
        InputError: A data set cannot be read, or a baseline is unavailable.
    """
    learned = SimLLM(model)
    own = [registry.model_metric(learned.name, learned)]
    if learned.head:
        own.append(registry.same_metric("simllm-same", learned))
    metrics = [*own, *map(registry.load, config.baselines)]
    triples = contrast.clean_triples(contrast.load())
    return {
        "signature": learned.signature,
        "spearman": {set_name(Path(file)): correlate_metrics(Path(file), metrics) for file in config.rated},
        "contrast": {metric_name(metric.name): contrast_accuracies(metric, triples) for metric in metrics},
        **_measure_meaning(metrics, learned, config),
        **measure_reliability(learned, config),
        **measure_comments(learned, config),
    }


def set_name(file: Path) -> str:
    """Return the name of a data set, such as "stsb_en/test" for the file `data/sts/stsb_en/test.jsonl`.

    The folder is part of the name, because several folders have a file `test`.
    """
    return f"{file.parent.name}/{file.stem}"


def correlate_metrics(file: Path, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Correlate the scores of each metric with the human ratings in a file.

    Args:
        file: A file of rated text pairs.
        metrics: The metrics.

    Returns:
        A dictionary. Under "pairs", it has the number of text pairs. Under the name of each metric, it has a
        dictionary: Spearman's correlation "rho", and the bounds "low" and "high" of its 95% confidence
        interval.

    Raises:
        InputError: The file cannot be read, or a metric is not installed.
    """
    result = correlate_all(ratings.load(file), metrics)
    if result.missing:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in result.missing.items()))
    figures = {
        metric_name(row.metric): {"rho": row.spearman, "low": row.low, "high": row.high}
        for row in result.rows
    }
    return {"pairs": result.rows[0].n, **figures}


def _measure_meaning(metrics: Sequence[Metric], learned: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure metrics, and the meaning head of a model, on the meaning items that the configuration names.

    Args:
        metrics: The metrics: the model's score, its probability of the same meaning (if it has a meaning
            head), and the baselines.
        learned: The model.
        config: The data sets.

    Returns:
        Under "items", "flags" and "unseen_items", the results of `measure_items`, `measure_flags` and
        `measure_unseen_items`. A key is left out if the configuration names no items for it. If the
        model has no meaning head, "flags" and "unseen_items" are left out.
    """
    nothing_excluded, held_out = ExcludedTexts([]), lexicon.load().held_out_words
    figures: dict[str, Any] = {}
    if config.items is not None:
        test = read_items(config.items, "test", nothing_excluded, held_out)
        figures["items"] = measure_items(metrics, test)
        if learned.head:
            figures["flags"] = measure_flags(learned, test)
    if config.unseen_items is not None and learned.head:
        unseen = read_items(config.unseen_items, None, nothing_excluded, held_out)
        figures["unseen_items"] = measure_unseen_items(learned, unseen)
    return figures


def measure_reliability(learned: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure how well the probabilities of the meaning head agree with the labels of text pairs.

    The meaning head predicts the probability that two texts have the same meaning. The labels tell whether
    two texts have the same meaning. The text pairs are from `meaning_test_pairs`, and were held out from
    training. Only one half of them is used here, because `calibrate_meaning` fits the probabilities to the
    other half.

    Args:
        learned: The model.
        config: The data sets.

    Returns:
        Under "reliability", a dictionary: the number of pairs ("pairs"), the share of pairs that are
        classified correctly ("accuracy"), the expected calibration error ("ece"), and the bins of the
        reliability diagram ("bins"). The result is empty if the model has no meaning head, or the
        configuration lacks `test_comments` or `labelled`.
    """
    if not (learned.head and config.test_comments and config.labelled):
        return {}
    pairs = meaning_test_pairs(Path(config.test_comments), Path(config.labelled), config.items)[1::2]
    same = learned.score([pair.first for pair in pairs], [pair.second for pair in pairs]).on("same")
    labels = np.array([pair.label for pair in pairs])
    diagram = reliability(same, labels)
    figures = {
        "pairs": len(pairs),
        "accuracy": float(((same >= 0.5) == (labels > 0.5)).mean()),
        "ece": calibration_errors(diagram)[0],
        "bins": [each._asdict() for each in diagram],
    }
    return {"reliability": figures}


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
        Under "languages", the retrieval figures of each programming language: the number of pairs, the
        share of summaries with their own description on rank 1 ("first"), and the mean reciprocal rank
        ("mrr"). Under "random_pairs", statistics of the scores of random pairs of summaries: "mean",
        "median", and the 5% and 95% quantiles ("p5", "p95").

    Raises:
        InputError: Fewer than two held-out comments have a description.
    """
    random, languages = np.random.default_rng(_SEED), {}
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


if __name__ == "__main__":
    sys.exit(main())
