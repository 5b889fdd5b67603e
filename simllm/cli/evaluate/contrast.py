"""`simllm evaluate contrast`: does a rewording score higher than a change of meaning?"""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.cli.evaluate import options
from simllm.io import files
from simllm.io.tables import Table

_EXAMPLES = """examples:
  simllm evaluate contrast
  simllm evaluate contrast --triples mine.jsonl --metrics simllm,rouge-l -f json
"""


def add(commands: options.Commands, command: options.Command) -> None:
    """Add the command."""
    contrast = command(
        commands, "contrast", "ask whether a rewording scores higher than a change of meaning", _EXAMPLES
    )
    contrast.add_argument(
        "--triples", type=Path, metavar="FILE",
        help="JSON lines with reference, rewording, change, kind and form; default: the included ones",
    )  # fmt: skip
    options.add_metrics(contrast)
    contrast.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    with options.eval_extra():
        from simllm.evaluation import contrast
        from simllm.metrics import registry
        from simllm.metrics.text import jaccard
    files.check_output(options.output, [options.triples] if options.triples else [], options.overwrite)
    triples = contrast.cleaned(contrast.load(options.triples or contrast.OWN))
    found, missing = registry.load(options.metric_names(options.metrics), options.model)
    rows = [("word overlap", *contrast.accuracies(jaccard.score, triples))]
    for name, shares in options.of_each(found, missing, lambda score: contrast.accuracies(score, triples)):
        rows.append((name, *shares))
    forms, kinds = (dict.fromkeys(labels) for labels in (triples.forms, triples.kinds))
    table = Table(
        columns=("metric", "all", *forms, *kinds),
        rows=rows,
        summary={"triples": len(triples.references), "chance": 0.5, "ties": "count half"},
    )
    options.write(table, missing, options)
