"""`simllm evaluate robustness`: do scores follow the meaning when summaries are edited?"""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.cli.evaluate import options
from simllm.errors import InputError
from simllm.io import files
from simllm.io.tables import Table

_EXAMPLES = """examples:
  simllm evaluate robustness
  simllm evaluate robustness --summaries references.txt --metrics simllm,rouge-l -f json
"""


def add(commands: options.Commands, command: options.Command) -> None:
    """Add the command."""
    robustness = command(
        commands, "robustness", "edit summaries and ask whether scores follow the meaning", _EXAMPLES
    )
    robustness.add_argument(
        "--summaries", type=Path, metavar="FILE",
        help="texts, one a line; default: the references of the included triples",
    )  # fmt: skip
    options.add_metrics(robustness)
    robustness.add_argument("--seed", type=int, default=1, metavar="N", help="default: %(default)s")
    robustness.add_argument(
        "--examples", type=int, default=3, metavar="N", help="failures to show a metric; default: %(default)s"
    )
    robustness.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    with options.eval_extra():
        from simllm.evaluation import contrast
        from simllm.evaluation.robustness import KINDS, edits, robustness
        from simllm.metrics import registry
        from simllm.perturb.summaries import lexicon
    if options.examples < 0:
        raise InputError(f"--examples: expected a number from 0, not {options.examples}")
    given = options.summaries
    files.check_output(options.output, [given] if given else [], options.overwrite)
    summaries = [line for _, line in files.lines(given)] if given else contrast.load().references
    made = edits(summaries, lexicon.load(), options.seed)
    found, missing = registry.load(options.metric_names(options.metrics), options.model)
    rows, separation, failures = [], {}, {}
    for name, result in options.of_each(
        found, missing, lambda score: robustness(score, made, options.examples)
    ):
        for kind, drop in result.drop.items():
            count = made.kinds.count(kind)
            rows.append((name, kind, KINDS[kind], count, drop, result.auc_of[kind]))
        separation[f"auc of {name}"] = result.auc
        for number, failure in enumerate(result.failures, 1):
            failures[f"failure {number} of {name}"] = str(failure)
    table = Table(
        columns=("metric", "edit", "meaning", "edits", "drop", "auc"),
        rows=rows,
        summary={"summaries": len(made.summaries), "seed": options.seed, **separation, **failures},
    )
    options.write(table, missing, options)
