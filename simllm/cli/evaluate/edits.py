"""`simllm evaluate edits`: compare systems (such as language models) that edit code, and write a report."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from simllm.cli import shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

MODEL = None
EXAMPLES = """examples:
  simllm evaluate edits gpt.jsonl llama.jsonl --out report
  simllm evaluate edits tested.jsonl --top 1,5 --metrics exact-match,lemod,rpsr --out report
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate edits`."""

    items: list[Path]
    out: Path
    metrics: str | None = None
    as_published: bool = False
    largest_tree: int | None = None
    top: str = "1"
    language: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate edits` to its parser."""
    command.add_argument(
        "items", type=Path, nargs="+", metavar="FILE",
        help="JSON lines with id, source, reference, candidate or reply, language; optional system, variant, "
        "passed. Without system, a file is a system",
    )  # fmt: skip
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    command.add_argument("--metrics", metavar="A,B,…", help="metrics for code; default: seven of them")
    shared_options.add_code_options(command)
    command.add_argument("--top", metavar="K,…", help="the k of TOP-k; default: %(default)s")
    command.add_argument("--language", metavar="NAME", help="the language of lines without `language`")


def run(options: Options) -> None:
    """Run `simllm evaluate edits`: write a report folder, and a table with a row for each system.

    TOP-k (also called pass@k) is the probability that at least one of k edits solves an item.
    """
    with packages.require_eval_extra(), packages.require_code_extra():
        from simllm.evaluation.code_edits import report
        from simllm.evaluation.code_edits.study import METRICS, run_study
        from simllm.io.report import check_report
    try:
        top = sorted({int(k) for k in options.top.split(",")})
    except ValueError:
        # Refused below, with the same message as 0.
        top = [0]
    if top[0] < 1:
        raise InputError(f"--top {options.top}: expected whole numbers from 1, such as 1,5")
    output_file.check_output(options.output, options.overwrite)
    check_report(options.out, report.KIND, options.items)
    names = shared_options.chosen_names(options.metrics) if options.metrics is not None else METRICS
    names = shared_options.with_code_options(names, options.as_published, options.largest_tree)
    study = run_study(options.items, names, top, options.language, options.as_published)
    report.write(study, options.out, "simllm " + shlex.join(sys.argv[1:]))
    # A rate is None if the tests of a system's edits are not known.
    rates = [f"TOP-{k}" for k in top]
    table = Table(
        columns=("system", *study.comparisons, *rates),
        rows=[
            [
                system.name,
                *(found.systems[place].mean for found in study.comparisons.values()),
                *(study.summaries[system.name].get(rate) for rate in rates),
            ]
            for place, system in enumerate(study.systems)
        ],
        summary={"items": len(study.ids), **study.replies, "report": f"{options.out}/report.html"},
    )
    shared_options.write_table(table, {}, options, study.warnings)
