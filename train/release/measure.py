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
    """Parse the command line, evaluate a model for its model card, and return the exit status."""
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
    """Evaluate a model on test data, and write the results as JSON.

    Args:
        model: The model folder.
        overrides: `key=value` items that change the configuration.
        config: A YAML file with the keys of `MeasureConfig`.
        output: The file to write; None: standard output.
        overwrite: Whether an existing output file may be replaced.
    """
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
    """Check that the files of comments exist, before a training or measurement that takes long.

    Raises:
        InputError: A file is missing.
    """
    for key in ("comments", "unseen_comments"):
        _check_file(config, key)


def _check_file(config: MeasureConfig, key: str) -> None:
    file = getattr(config, key)
    if file and not Path(file).is_file():
        raise InputError(f"{key}: {file}: no such file")


def measure(model: Path, config: MeasureConfig) -> dict[str, Any]:
    """Measure a model and the baselines (other metrics) on all data sets.

    Args:
        model: The model folder.
        config: The data sets and the baselines.

    Returns:
        A dictionary of JSON values:

        - "signature": a text with everything that can change the model's scores, such as the model's hash;
        - "spearman": for each file of text pairs with human ratings, the result of `correlate_metrics`;
        - "contrast": for each metric, its accuracies on the contrast set, from `contrast_accuracies`;
        - "items": how often each metric scores a rewording of a text higher than a text with another meaning,
          from `measure_items`;
        - "flags": how often the model warns that the meaning may have changed, from `measure_flags`;
        - "unseen_items": how well the model tells rewordings from texts with other meanings, on data on which
          no model is trained, from `measure_unseen_items`;
        - "reliability": how well the predicted probabilities that two texts have the same meaning agree with
          labels, from `measure_reliability`;
        - "languages", "unseen" and "random_pairs": results on code comments, from `measure_comments`.

        "items", "flags", "unseen_items" and "reliability" are left out if the configuration names no data for
        them. The last three are also left out if the model has no meaning head (the network that predicts
        these probabilities).

    Raises:
        InputError: A data set cannot be read, or a baseline is unavailable.
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
    """Measure metrics, and the meaning head of a model, on meaning items.

    A meaning item has a main text, rewordings, and texts with other meanings. The meaning head predicts the
    probability that two texts have the same meaning.

    Args:
        metrics: The metrics: the model's score, its probability of the same meaning (if it has a meaning
            head), and the baselines.
        learned: The model.
        config: The data sets, with the files of meaning items.

    Returns:
        A dictionary with these keys:

        - "items": how often each metric scores a rewording higher than a text with another meaning, from
          `measure_items`;
        - "flags": how often the model warns that the meaning may have changed, from `measure_flags`;
        - "unseen_items": how well the model tells rewordings from texts with other meanings, on items on
          which no model is trained, from `measure_unseen_items`.

        A key is left out if the configuration names no items for it. If the model has no meaning head,
        "flags" and "unseen_items" are left out.
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
