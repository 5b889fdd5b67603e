"""`simllm evaluate robustness`: compare how scores drop after edits that keep or change the meaning."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from simllm.cli import results, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, reading
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

EXAMPLES = """examples:
  simllm evaluate robustness
  simllm evaluate robustness --summaries references.txt --metrics simllm,rouge-l -f json
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate robustness`."""

    summaries: Path | None = None
    metrics: str | None = None
    seed: int = 1
    examples: int = 3
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate robustness` to its parser."""
    command.add_argument(
        "--summaries", type=Path, metavar="FILE",
        help="texts, one per line; default: the references of the included triples",
    )  # fmt: skip
    shared_options.add_metrics_option(command)
    command.add_argument("--seed", type=int, metavar="N", help="default: %(default)s")
    command.add_argument(
        "--examples", type=int, metavar="N", help="failures to show a metric; default: %(default)s"
    )


def run(options: Options) -> None:
    """Run `simllm evaluate robustness`: write a table with a metric's mean drop after each kind of edit."""
    with packages.require_eval_extra():
        from simllm.evaluation import contrast
        from simllm.evaluation.robustness import FEW, KINDS, make_edits, measure_robustness
        from simllm.metrics import registry
        from simllm.perturb.summaries import lexicon
    if options.examples < 0:
        raise InputError(f"--examples: expected a number from 0, not {options.examples}")
    output_file.check_output(options.output, options.overwrite)
    file = options.summaries
    summaries = [line for _, line in reading.read_lines(file)] if file else contrast.load().references
    edits = make_edits(summaries, lexicon.load(), options.seed)
    names = shared_options.chosen_names(options.metrics, options.model)
    metrics, missing = registry.load_all(names, options.model)
    rows, separation, failures, about = [], {}, {}, []
    if len(edits.summaries) < FEW:
        about.append(f"{len(edits.summaries)} different summaries are few: each edit weighs much")
    with results.collected() as messages:
        for name, result in shared_options.compute_for_each(
            metrics, missing, lambda score: measure_robustness(score, edits, options.examples)
        ):
            for kind, drop in result.drop.items():
                count = edits.kinds.count(kind)
                rows.append((name, kind, KINDS[kind], count, drop, result.auc_of[kind]))
            separation[f"auc of {name}"] = result.auc
            for number, failure in enumerate(result.failures, 1):
                failures[f"failure {number} of {name}"] = str(failure)
            # A drop is relative to how much higher summaries score against themselves than against others.
            if any(map(isnan, result.drop.values())):
                about.append(f"{name}: no drops; no summary scores higher against itself than others do")
    table = Table(
        columns=("metric", "edit", "meaning", "edits", "drop", "auc"),
        rows=rows,
        summary={"summaries": len(edits.summaries), "seed": options.seed, **separation, **failures},
    )
    shared_options.write_table(table, missing, options, [*about, *messages])
