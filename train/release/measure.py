"""Measure a model for its model card, and write the results as JSON.

    python -m train.release.measure runs/contrastive/model -o figures.json
    python -m train.release.measure runs/mine/model comments=mine/comments.jsonl unseen_comments=null

The results show the model's agreement with human ratings, how often it scores a rewording higher than a text
with another meaning, how well it finds the rest of a comment from the first sentence, and its scores of
random pairs of comments.
The option `--config FILE` names a YAML file with the data sets; the default is configs/measure.yaml.
Arguments of the form `key=value` replace settings of this file. In the second example, `comments` names the
file comments.jsonl of another corpus, which `python -m train.corpus build` has made. With
`unseen_comments=null`, no comments of further repositories are used. The results on finding the rest of a
comment, and on random pairs, then come from the comments in comments.jsonl that are held out from training.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation import contrast_triples, ratings
from simllm.evaluation.human_correlation import correlate_all
from simllm.io import tables
from simllm.metric import SimLLM
from simllm.metrics import registry
from simllm.metrics.metric_interface import Metric
from simllm.perturb.summaries import lexicon
from train.contrastive.meaning_items import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.release.meaning_head_calibration import measure_reliability
from train.release.measure_meaning import (
    contrast_accuracies,
    measure_flags,
    measure_items,
    measure_unseen_items,
    metric_name,
)
from train.release.measurement_config import MeasureConfig
from train.release.retrieval_and_random_pairs import measure_comments
from train.runtime import yaml_and_overrides
from train.runtime.overwrite_option import add_overwrite_option, check_output
from train.runtime.tool_exit_status import run_tool


def main() -> int:
    """Run the command line, and return the exit status."""
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
    loaded = yaml_and_overrides.load(MeasureConfig, config, overrides)
    if output:
        check_output(output, overwrite, [model, config, *_input_files(loaded)])
    tables.show(json.dumps(measure(model, loaded), indent=1) + "\n", output)


def _input_files(config: MeasureConfig) -> list[Path]:
    """Return the files that the configuration names, by paths or glob patterns."""
    patterns = [*config.rated, config.comments, config.unseen_comments, config.test_comments, config.labelled]
    patterns += [config.items, config.unseen_items]
    names = [name for pattern in patterns if pattern for name in (pattern, *glob(pattern))]  # noqa: PTH207 (Path.glob takes no absolute pattern)
    return [Path(name) for name in names]


def check_comments(config: MeasureConfig) -> None:
    """Check that the files of comments exist, before a training or measurement that takes long."""
    for key in ("comments", "unseen_comments"):
        _check_file(config, key)


def _check_file(config: MeasureConfig, key: str) -> None:
    file = getattr(config, key)
    if file and not Path(file).is_file():
        raise InputError(f"{key}: {file}: no such file")


def measure(model: Path, config: MeasureConfig) -> dict[str, Any]:
    """Measure a model and the baselines on all data sets.

    Returns JSON values: "signature", "spearman" (from `correlate_metrics`, by data set), "contrast" (from
    `contrast_accuracies`, by metric), and the results of `_measure_meaning`, `measure_reliability` and
    `measure_comments`. Keys without data in the configuration are left out.
    """
    check_comments(config)
    learned = SimLLM(model)
    if learned.head:
        for key in ("test_comments", "labelled"):
            _check_file(config, key)
    own = [registry.model_metric(learned.name, learned)]
    if learned.head:
        own.append(registry.same_metric("simllm-same", learned))
    metrics = [*own, *map(registry.load, config.baselines)]
    triples = contrast_triples.clean_triples(contrast_triples.load())
    return {
        "signature": learned.signature,
        "spearman": {set_name(Path(file)): correlate_metrics(Path(file), metrics) for file in config.rated},
        "contrast": {metric_name(metric.name): contrast_accuracies(metric, triples) for metric in metrics},
        **_measure_meaning(metrics, learned, config),
        **measure_reliability(learned, config),
        **measure_comments(learned, config),
    }


def set_name(file: Path) -> str:
    """Return the name of a data set: "stsb_en/test" for the file `data/sts/stsb_en/test.jsonl`."""
    # The folder is part of the name, because several folders have a file `test`.
    return f"{file.parent.name}/{file.stem}"


def correlate_metrics(file: Path, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Correlate each metric's scores with the ratings in a file: "rho", and "low" and "high" of its 95%
    interval.

    "pairs" is the number of text pairs.
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
    """Measure metrics and the meaning head on meaning items: "items", and with a head "flags" and
    "unseen_items".
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


if __name__ == "__main__":
    sys.exit(main())
