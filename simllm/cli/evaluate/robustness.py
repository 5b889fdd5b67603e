"""`simllm evaluate robustness`: compare how scores drop after edits that keep or change the meaning.

Edited are summaries or, with `--jsonl`, the code that summaries describe.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple, dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli import results, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, reading
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table, format_count

if TYPE_CHECKING:
    from simllm.metrics.interface import Example

EXAMPLES = """examples:
  simllm evaluate robustness
  simllm evaluate robustness --summaries references.txt --metrics simllm,rouge-l -f json
  simllm evaluate robustness --jsonl functions.jsonl --metrics simllm-code,jaccard,judge=judge.toml

With --jsonl, the code of Java and Python functions is changed, and their summaries are scored against it:
rewritten without a change of what it does, with a deliberate mistake (a mutant), and exchanged for that of
another function. A line has candidate (the summary), code and language. Metrics of two texts compare the
summary with the words of the code; a judge needs reads = "source".
"""
_CODE_METRICS = "simllm-code,simllm-fits,simllm,jaccard"


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate robustness`."""

    summaries: Path | None = None
    jsonl: Path | None = None
    candidate_field: str = "candidate"
    code_field: str = "code"
    language: str | None = None
    mutants: int | None = None
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
    command.add_argument(
        "--jsonl", type=Path, metavar="FILE", help="functions with their summaries: change the code instead"
    )
    command.add_argument("--candidate-field", metavar="NAME", help="for --jsonl; default: %(default)s")
    command.add_argument("--code-field", metavar="NAME", help="for --jsonl; default: %(default)s")
    command.add_argument("--language", choices=("java", "python"), help="of lines that name none")
    command.add_argument(
        "--mutants", type=int, metavar="N", help="for --jsonl: of a function; default: one of each kind"
    )
    command.add_argument(
        "--metrics", metavar="A,B,…",
        help=f"names, or name=argument; default: all of them, and with --jsonl {_CODE_METRICS}",
    )  # fmt: skip
    command.add_argument("--seed", type=int, metavar="N", help="default: %(default)s")
    command.add_argument(
        "--examples", type=int, metavar="N", help="failures to show a metric; default: %(default)s"
    )


def run(options: Options) -> None:
    """Run `simllm evaluate robustness`: write a table with a metric's mean drop after each kind of edit."""
    if options.jsonl is not None:
        _run_with_code(options, options.jsonl)
        return
    shared_options.refuse(
        options, ("candidate_field", "code_field", "language", "mutants"), "goes with --jsonl"
    )
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


def _run_with_code(options: Options, file: Path) -> None:
    """Write a table of how scores of summaries change when the code is rewritten or broken."""
    shared_options.refuse(options, ("summaries", "examples"), "does not go with --jsonl")
    with packages.require_eval_extra(), packages.require_code_extra():
        from simllm.evaluation.code_robustness import FEW, make_code_edits, measure_code_robustness
        from simllm.metrics import registry
    output_file.check_output(options.output, options.overwrite)
    names = shared_options.chosen_names(options.metrics or _CODE_METRICS, options.model)
    for name in names:
        if registry.is_code_metric(name) or registry.parse(name).kind in ("simllm-both", "column"):
            raise InputError(f"metric {name}: expected a metric that scores a summary without a reference")
        if registry.is_judge(name) and registry.needs_reference(name):
            raise InputError(f'metric {name}: expected a judge with reads = "source": there is no reference')
    edits = make_code_edits(_read_functions(options, file), options.seed, options.mutants)
    about = [
        f"{format_count(count, 'function')} left out: {reason}" for reason, count in edits.left_out.items()
    ]
    if len(edits.functions) < FEW:
        about.append(f"{len(edits.functions)} functions are few: each weighs much")
    metrics, missing = registry.load_all(names, options.model)
    rows, spreads = [], {}
    with results.collected() as messages:
        for name, found in shared_options.compute_with_each(
            metrics,
            missing,
            lambda metric: measure_code_robustness(metric.score(edits.examples).values, edits),
        ):
            rows += [(name, *astuple(figure)) for figure in found.figures]
            spreads[f"spread of {name}"] = found.spread
            if not found.spread > 0:
                about.append(f"{name}: scores all functions alike; there are no moves and no drops")
            if found.unscored:
                about.append(f"{name}: {found.unscored} versions of functions have no score")
    columns = ("metric", "edit", "edits", "figure", "value", "low", "high")
    summary = {"functions": len(edits.functions), "seed": options.seed, "ties": "count half", **spreads}
    shared_options.write_table(Table(columns, rows, summary), missing, options, [*about, *messages])


def _read_functions(options: Options, file: Path) -> list[Example]:
    """Read functions with their summaries from JSON lines."""
    from simllm.metrics.interface import Example

    functions = []
    for where, row in reading.objects(file):
        summary, code = (
            reading.text_under(row, name, where) for name in (options.candidate_field, options.code_field)
        )
        language = reading.text_under(row, "language", where) if "language" in row else options.language
        functions.append(Example(summary, None, code, language))
    return functions
