"""`simllm evaluate contrast`: does a rewording score higher than a change of meaning?"""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.evaluation.cli.shared import Command, Commands, add_metrics, eval_extra, metric_names, write
from simllm.tables import Table

_EXAMPLES = """examples:
  simllm evaluate contrast
  simllm evaluate contrast --triples mine.jsonl --metrics simllm,rouge-l -f json
"""


def add(commands: Commands, command: Command) -> None:
    """Add the command."""
    contrast = command(
        commands, "contrast", "ask whether a rewording scores higher than a change of meaning", _EXAMPLES
    )
    contrast.add_argument(
        "--triples", type=Path, metavar="FILE",
        help="JSON lines with reference, rewording, change, kind and form; default: the included ones",
    )  # fmt: skip
    add_metrics(contrast)
    contrast.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    with eval_extra():
        from simllm.evaluation import contrast, metrics
        from simllm.evaluation.baselines import UnavailableError, jaccard
    triples = contrast.cleaned(contrast.load(options.triples or contrast.OWN))
    found, missing = metrics.load(metric_names(options.metrics), options.model)
    rows = [("word overlap", *contrast.accuracies(jaccard.score, triples))]
    for metric in found:
        try:
            rows.append((metric.name, *contrast.accuracies(metric.score, triples)))
        except UnavailableError as error:
            missing[metric.name] = str(error)
    forms, kinds = (dict.fromkeys(labels) for labels in (triples.forms, triples.kinds))
    table = Table(
        columns=("metric", "all", *forms, *kinds),
        rows=rows,
        summary={"triples": len(triples.references), "chance": 0.5, "ties": "count half"},
    )
    write(table, missing, options)
