"""`simllm evaluate metamorphic`: compare a tool's success rate on original code and on rewritten code."""

from __future__ import annotations

import argparse
import contextlib
import math
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from simllm.cli import model_options, shared_options
from simllm.cli.model_options import ModelOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table, format_count

if TYPE_CHECKING:
    from simllm.evaluation.metamorphic.judges import Judge
    from simllm.evaluation.metamorphic.results import Recorded
    from simllm.metrics.interface import Metric

EXAMPLES = """examples:
  simllm perturb code --jsonl functions.jsonl -o variants.jsonl
  simllm evaluate metamorphic --items functions.jsonl --variants variants.jsonl --command ./summarize \\
      --draws 5 --metric simllm --threshold 0.6 --out report
  simllm evaluate metamorphic --items bugs.jsonl --variants variants.jsonl --template fix.j2 \\
      --base-url http://localhost:8000/v1 --model M --draws 10 --code --restore --judge './run_tests {id}' \\
      --out report
  simllm evaluate metamorphic --recorded results.jsonl --out report

The command reads code on standard input and writes its answer; the environment variables SIMLLM_ID,
SIMLLM_LANGUAGE and SIMLLM_DRAW tell it the item, the language and the number of the draw, and SIMLLM_FOLDER
a folder with the item's fields (item.json, without reference and label) and with the texts under `files`.

An answer is a success if the judge command that reads it exits with status 0, if its score against the item's
`reference` reaches the threshold, or if it equals the item's `label`. If the last line that the judge prints
is plausible, failing, uncompilable or timeout, this is the outcome. The judge has SIMLLM_ID, SIMLLM_SIDE and
SIMLLM_FOLDER. In the words of both commands {id} is replaced, and in those of the judge {side}; {id} is
refused where it may run as code.

--restore puts the old names of renamed functions into answers about variants, where code defines or calls
the function. Parameters, variables, attributes, keyword arguments, strings and comments stay as they are. In
prose, all names that cannot be ordinary words are put back.

Recorded results are JSON lines: {"id", "side": "original" or "transformed", "draw", "success" or "output"} or
{"id", "original": [7, 10], "transformed": [0, 10]} (successes and draws); optional: model, group, nll, rules.
A stopped run is continued by the same command; a lost endpoint gives exit status 1. --replay reads replies
from the file answers.jsonl of an earlier report. The API key comes from the environment variable
OPENAI_API_KEY.
"""


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The options of `simllm evaluate metamorphic`."""

    out: Path
    recorded: Path | None = None
    items: Path | None = None
    variants: Path | None = None
    command: list[str] | None = None
    template: Path | None = None
    draws: Any = None  # None until the check, so that a given option differs from a missing one
    judge: list[str] | None = None
    metric: str | None = None
    threshold: float | None = None
    restore: bool = False
    code: bool = False
    nll_model: Path | None = None
    parallel: Any = None
    timeout: Any = None
    alpha: float = 0.05


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate metamorphic` to its parser."""
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    command.add_argument("--recorded", type=Path, metavar="FILE", help="results of tools, as told below")
    command.add_argument("--items", type=Path, metavar="FILE", help="original code, as JSON lines")
    command.add_argument("--variants", type=Path, metavar="FILE", help="the output of simllm perturb code")
    command.add_argument(
        "--command", type=_words, metavar="WORDS", help="the tool that is asked about the code"
    )
    command.add_argument(
        "--template", type=Path, metavar="FILE",
        help="the tool is a language model: jinja2 over {{ code }} and the fields of an item",
    )  # fmt: skip
    model_options.add_model(command)
    command.add_argument("--draws", type=int, metavar="N", help="answers a side; default: 1")
    command.add_argument(
        "--judge", type=_words, metavar="WORDS", help="command that judges an answer by its exit status"
    )
    command.add_argument("--metric", metavar="NAME", help="metric of an answer and the reference")
    command.add_argument("--threshold", type=float, metavar="X", help="least score of --metric for a success")
    command.add_argument(
        "--restore",
        action="store_true",
        help="put old names of functions (in prose: all names) into answers about variants before judging",
    )
    command.add_argument(
        "--code", action="store_true",
        help="judge the code in an answer, in a code block for example; without any it is uncompilable",
    )  # fmt: skip
    command.add_argument("--nll-model", type=Path, metavar="FOLDER", help="causal language model for the NLL")
    command.add_argument(
        "--parallel", type=int, metavar="N", help="commands at once; default: 1; requests at once: 8"
    )
    command.add_argument("--timeout", type=float, metavar="S", help="seconds of a command; default: 600")
    command.add_argument("--alpha", type=float, help="significance level; default: %(default)s")


def _words(command: str) -> list[str]:
    """Split a command into words, as a shell does."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{command!r}: {error}") from None
    if not words:
        raise argparse.ArgumentTypeError(f"{command!r}: expected a command")
    return words


def run(options: Options) -> None:
    """Run `simllm evaluate metamorphic`: write a report folder, and a table with a row for each tool."""
    options = _checked(options)
    with packages.require_eval_extra():
        from simllm.evaluation import metamorphic
        from simllm.evaluation.metamorphic import judges, report
        from simllm.io.report import check_report
        from simllm.metrics import registry
    # The questions to the tool cost most: whatever can be wrong is checked before.
    given = [file for file in (options.recorded, options.items, options.variants) if file]
    output_file.check_output(options.output, options.overwrite)
    check_report(options.out, report.KIND, given)
    items, warned = _read_items(options)
    if not options.recorded and not options.judge:
        _check_judged_by(options, items)
    if options.judge:
        judges.check_command(options.judge, items)
    if options.command:
        judges.check_command(options.command, items, "tool")
    variants = metamorphic.read_variants(options.variants, items) if options.variants else []
    # With a template, `--model` is the model at the endpoint.
    of_metric = None if options.template else options.model
    if of_metric and not (options.metric and registry.uses_model(options.metric)):
        raise InputError("--model goes with --metric simllm or simllm-same, without =FOLDER")
    metric = registry.load(options.metric, of_metric) if options.metric else None
    if metric and (registry.is_code_metric(metric.name) or registry.needs_source(metric.name)):
        raise InputError(f"--metric {metric.name}: reads code; expected a metric that compares two texts")
    if options.recorded:
        recorded = metamorphic.read_recorded(options.recorded)
    else:
        recorded = _ask(options, items, variants)
    # Warnings about the input come first.
    recorded.warnings[:0] = warned
    if options.code:
        _keep_code(recorded, items, variants)
    if options.restore:
        _restore(recorded, items, variants)
    judge = _judge(options, items, metric, recorded.warnings)
    study = metamorphic.evaluate(recorded, items, variants, judge, metric, options.alpha)
    report.write(study, options.out, "simllm " + shlex.join(sys.argv[1:]))
    rows = [
        [name or "the tool", *(getattr(found.study.mean, field) for field in _COLUMNS), found.holm_p]
        for name, found in study.tools.items()
    ]
    table = Table(
        columns=("tool", *_COLUMNS, "p"), rows=rows, summary={"report": f"{options.out}/report.html"}
    )
    # In JSON, the warnings would otherwise be on standard error alone.
    if options.format == "json":
        table.summary["warnings"] = study.warnings
    shared_options.write_table(table, {}, options)


_MOST, _LONGEST = 10_000, 1_000_000
_REQUESTS = 8  # to a model at the same time
_LIMITS: dict[str, Any] = {"draws": 1, "parallel": 1, "timeout": 600.0}
_COLUMNS = ("items", "original", "transformed", "difference", "low", "high")


def _checked(options: Options) -> Options:
    """Check that the options can be used together, and that their numbers are in range; add the defaults of
    those that only go with a command.
    """
    if sum(map(bool, (options.recorded, options.command, options.template))) != 1:
        raise InputError("expected --recorded FILE, or --items, --variants and --command or --template")
    if not options.recorded and not (options.items and options.variants):
        raise InputError(f"--{'command' if options.command else 'template'} needs --items and --variants")
    if options.template is None:
        # `--model` also goes with a metric.
        of_model = [name for name in model_options.NAMES if name != "model"]
        shared_options.refuse(options, of_model, "goes with --template")
    model_options.check_replay(options)
    if options.variants and not options.items:
        raise InputError("--variants needs --items: the original code")
    if options.judge and options.threshold is not None:
        raise InputError("--judge and --threshold are two ways to judge; name one")
    if options.threshold is not None and not options.metric:
        raise InputError("--threshold needs --metric")
    if options.threshold is not None and not math.isfinite(options.threshold):
        raise InputError(f"--threshold {options.threshold}: expected a number")
    if options.restore and not options.variants:
        raise InputError("--restore needs --variants, which hold the names")
    if options.code and not options.items:
        raise InputError("--code needs --items, which tell the language")
    if options.nll_model and not options.items:
        raise InputError("--nll-model needs --items: the original code")
    tools = ["command", "template"]
    for name, commands in (
        ("draws", tools), ("parallel", [*tools, "judge"]), ("timeout", ["command", "judge"])
    ):  # fmt: skip
        if getattr(options, name) is not None and not any(getattr(options, other) for other in commands):
            raise InputError(f"--{name} goes with {' or '.join(f'--{other}' for other in commands)}")
    if options.template and options.parallel is None:
        options = replace(options, parallel=_REQUESTS)
    options = replace(options, **{name: n for name, n in _LIMITS.items() if getattr(options, name) is None})
    if not (1 <= options.draws <= _MOST and 1 <= options.parallel <= _MOST):
        raise InputError(f"expected --draws and --parallel from 1 to {_MOST:,}")
    if not 0 < options.timeout <= _LONGEST:
        raise InputError(f"expected --timeout above 0 and at most {_LONGEST:,} seconds")
    if any("{side}" in word for word in options.command or ()):
        raise InputError("--command: {side} is only replaced in --judge; a tool must not know it")
    return options


def _read_items(options: Options) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read the items of `--items` by id, with warnings for the report.

    With `--nll-model`, `nll` of an item is the mean negative log-likelihood per token of its code.
    """
    warned: list[str] = []
    if not options.items:
        return {}, warned
    with packages.require_code_extra():
        from simllm.perturb.code.variants import read_items
    from simllm.evaluation.metamorphic.commands import check_files
    from simllm.evaluation.metamorphic.results import read_nll

    items = {item["id"]: item for item in read_items(options.items)}
    for item in items.values():
        read_nll(item, item["where"])  # before a tool is asked
        check_files(item, item["where"])
    if options.nll_model:
        from simllm.evaluation.metamorphic.likelihood import mean_nll

        values, cut = mean_nll([item["source"] for item in items.values()], options.nll_model)
        if cut:
            warned.append(f"{format_count(cut, 'source')} longer than what --nll-model reads were cut off")
        for item, value in zip(items.values(), values, strict=True):
            item["nll"] = value
    return items, warned


def _check_judged_by(options: Options, items: dict[str, dict[str, Any]]) -> None:
    """Check that each item has the field by which answers are judged: `reference` with `--threshold`, else
    `label`.
    """
    field = "label" if options.threshold is None else "reference"
    for name, item in items.items():
        if item.get(field) is None:
            how = "; give one, --judge or --threshold" if field == "label" else ""
            raise InputError(f"{options.items}: the item {name} has no {field}{how}")


def _ask(options: Options, items: dict[str, dict[str, Any]], variants: list[dict[str, Any]]) -> Recorded:
    """Ask the tool about original and rewritten code; resume from the answers in the report's folder."""
    from simllm.evaluation.metamorphic import report
    from simllm.evaluation.metamorphic.results import Recorded
    from simllm.evaluation.metamorphic.tool import (
        ANSWERS,
        CommandTool,
        ModelTool,
        collect_draws,
        count_crashes,
        make_questions,
    )
    from simllm.llm.model import Model
    from simllm.llm.records import ReplyRecord
    from simllm.llm.session import Session

    questions = make_questions(items, variants, options.draws)
    model = model_options.read_given(options) if options.template and not options.replay else None
    file = options.out / ANSWERS
    with contextlib.ExitStack() as held:
        if options.replay:
            record = ReplyRecord(options.replay, reads_only=True)
        else:
            OutputFolder(options.out, report.KIND.content).own()
            OutputFolder(options.out).reserve([ANSWERS])
            # The lock keeps a second process from asking the same questions and writing into the same file.
            held.enter_context(locked(file))
            record = held.enter_context(contextlib.closing(ReplyRecord(file)))
        session = None
        if options.template is None:
            command = CommandTool(options.command or [], record)
            find, asked = command.find, command.ask_all(questions, options.parallel, options.timeout)
        else:
            session = held.enter_context(
                Session(
                    model or Model(api=record.api),
                    record,
                    retries_failed=options.retry_failed,
                    is_replay=options.replay is not None,
                )
            )
            of_model = ModelTool(questions, options.template, session)
            find, asked = of_model.find, of_model.ask_all(questions)
        with shared_options.resumable():
            # Only the progress is of interest; the answers are in the record.
            for _ in tqdm(asked, unit=" answers", disable=not options.has_bar):
                pass
        if session is not None:
            session.check_complete()
        crashes = count_crashes(questions, find)
        draws = collect_draws(questions, find)
    reasons = [f"{count:,} with {reason}" for reason, count in crashes.most_common()]
    total = format_count(crashes.total(), "run")
    what = "the command crashed" if options.template is None else "the model gave no answer"
    warned = [f"{total} of {what}: {', '.join(reasons)}"] if reasons else []
    return Recorded(draws=draws, warnings=warned)


def _judge(
    options: Options,
    items: dict[str, dict[str, Any]],
    metric: Metric | None,
    warned: list[str],
) -> Judge | None:
    """Return the function that decides which answers are successes, by `--judge`, `--threshold` or the items'
    labels.

    It is None if there is none of these. Recorded answers must then state the successes. The judge appends
    its warnings to `warned`.
    """
    from simllm.evaluation.metamorphic import judges

    if options.judge:
        return judges.by_command(options.judge, options.parallel, options.timeout, warned, items)
    if metric is not None and options.threshold is not None:
        return judges.by_metric(metric, options.threshold, items)
    return judges.by_label(items) if any("label" in item for item in items.values()) else None


def _keep_code(recorded: Recorded, items: dict[str, dict[str, Any]], variants: list[dict[str, Any]]) -> None:
    """Replace answers, in place, by the code in them; an answer without code is uncompilable."""
    from simllm.code.reply import code_of_reply
    from simllm.evaluation.metamorphic.results import SIDES, UNCOMPILABLE

    shown = _by_variant(variants)
    without = unsure = total = 0
    for draw in recorded.draws:
        if draw.output is None or draw.id not in items or draw.success is not None:
            continue
        item, row = items[draw.id], shown.get((draw.id, draw.arm, draw.variant))
        source = row["text"] if row and draw.side == SIDES[1] else item["source"]
        found = code_of_reply(draw.output, item["language"], source=source)
        total += 1
        unsure += found.is_ambiguous
        without += found.text is None
        draw.output = found.text
        if found.text is None:
            draw.outcome, draw.success = UNCOMPILABLE, False
    for count, what in (
        (without, "have no code, and are uncompilable"),
        (unsure, "have several code blocks that fit equally well; the last counts"),
    ):
        if count:
            recorded.warnings.append(f"{count:,} of {format_count(total, 'answer')} {what}")


def _by_variant(variants: list[dict[str, Any]]) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Index variants by item, arm and number: an item has one for each arm, such as a single rule."""
    return {(row["id"], row.get("arm") or "", row.get("variant", 0)): row for row in variants}


def _restore(recorded: Recorded, items: dict[str, dict[str, Any]], variants: list[dict[str, Any]]) -> None:
    """Put the original names of functions back, in place, into the answers about rewritten code."""
    from simllm.perturb.code.restoring import restore_functions, uses_new_function

    rows = _by_variant(variants)
    recorded.restored = left = 0
    for draw in recorded.draws:
        row = rows.get((draw.id, draw.arm, draw.variant))
        if draw.side == "transformed" and draw.output is not None and row and row.get("names"):
            about = row["text"], items[draw.id]["language"], row["names"]
            restored = restore_functions(draw.output, *about)
            recorded.restored += restored != draw.output
            left += uses_new_function(restored, *about)
            draw.output = restored
    if left:
        recorded.warnings.append(
            f"{format_count(left, 'answer')} about variants still used the new name of a function: the old "
            "name means something else there"
        )
