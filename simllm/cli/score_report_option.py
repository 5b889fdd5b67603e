"""The options `--report` and `--group-by` of commands that score text pairs.

With `--report`, a command also writes an HTML page that shows the scored pairs. `--group-by` names fields of
the input. Pairs with equal values in a field form a group, and the page shows the mean score of each group.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm import optional_packages
from simllm.errors import InputError
from simllm.io import output_file, printable_path, read_json_lines, read_lines, real_path
from simllm.text_cleaning import encodable

if TYPE_CHECKING:
    from simllm.analysis.comparison import Comparison
    from simllm.analysis.score_report.scored_pairs import ScoredPairs
    from simllm.metric import SimLLM
    from simllm.scoring.scores import Scores

Groups = Mapping[str, Sequence[str]]  # from each field's name to its value for each pair


def add_option(command: argparse.ArgumentParser) -> None:
    """Add the option `--report` to a command's parser.

    The option names an HTML file, to which a report about the scored pairs is written.
    """
    command.add_argument(
        "--report", type=Path, metavar="FILE", help="also write an HTML page on which to look at the pairs"
    )


def add_group_option(command: argparse.ArgumentParser) -> None:
    """Add the option `--group-by` to a command's parser.

    The option names fields of the input. For each of these fields, the report groups the pairs by the field's
    value and shows the mean score of each group.
    """
    command.add_argument(
        "--group-by",
        metavar="A,B,…",
        help="for --report: fields of the JSON lines to group pairs by",
    )


def check(options: argparse.Namespace, inputs: Sequence[Path]) -> None:
    """Check that the report can be written to the file that the option `--report` names.

    The check is made before the command scores pairs, so that a long run does not fail at its end. Nothing is
    checked without the option `--report`.

    Args:
        options: The parsed options; `report`, `output` and `overwrite` are read.
        inputs: The input files of the command.

    Raises:
        InputError: The file is standard output, an input file, or the output file. Or the file exists, and
            `--overwrite` is not given. Or a package that the report needs is not installed.
    """
    if options.report is None:
        return
    if read_lines.is_stdin(options.report):
        raise InputError("--report -: expected a file; the table goes to standard output")
    output_file.check_output(options.report, inputs, options.overwrite)
    if options.output is not None and real_path.real(options.output) == real_path.real(options.report):
        raise InputError(f"--report {options.report}: -o names the same file")
    with optional_packages.require_eval_extra():
        import jinja2  # noqa: F401
        import scipy  # noqa: F401

        from simllm.io import svg_figure  # noqa: F401


def read_groups(options: argparse.Namespace) -> Groups:
    """Read the values by which a report groups text pairs.

    The pairs are read from JSON lines. The option `--group-by` names the fields with the values.

    Args:
        options: The parsed options; `group_by`, `report` and `jsonl` are read.

    Returns:
        A dict from each field's name to a list with the field's value for each pair; empty without
        `--group-by`. If all values of a field are whole numbers, and more than 12 of them are distinct,
        they become ranges such as "4 to 6".

    Raises:
        InputError: The option `--report` is missing, the JSON lines come from standard input or a pipe and
            cannot be read twice, or a line lacks a field.
    """
    if options.group_by is None:
        return {}
    if options.report is None:
        raise InputError("--group-by goes with --report FILE")
    if options.jsonl is None or not options.jsonl.is_file():
        raise InputError("--group-by goes with --jsonl FILE, and not with standard input or a pipe")
    fields = list(dict.fromkeys(name.strip() for name in options.group_by.split(",")))
    columns: dict[str, list[Any]] = {name: [] for name in fields}
    for where, row in read_json_lines.objects(options.jsonl):
        for name, values in columns.items():
            values.append(read_json_lines.value_under(row, name, where))
    from simllm.analysis.score_report.group_means import group_names  # slow, so not before the checks

    return {encodable(name): group_names(values) for name, values in columns.items()}


def columns_of(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """Collect what the HTML report shows about the scores of a simllm model, such as probabilities.

    The results are keyword arguments for `ScoredPairs`, the class that holds the content of the report.

    Args:
        scores: A dict from the name of each column of the report with scores of a simllm model to these
            scores. A column has the scores of one metric, or of one system (a source of candidates).

    Returns:
        A dict with these keyword arguments:

        - `same`: a dict from the name of a column to the probability, for each pair, that both texts have the
          same meaning. Columns without such probabilities are left out.
        - `changed`: a dict with the same keys. Each value tells for each pair whether its two texts are
          similar, but probably differ in meaning.
        - `truncated`: the number of texts that were truncated to the model's longest input.
        - `signature`: a text that names everything that can change a score.
        - `calibration`: the map that converts scores to percentiles and human ratings; None if there is none.

        The last three values are taken from the first entry of `scores`.
    """
    first = next(iter(scores.values()))
    return {
        "same": {name: own.same for name, own in scores.items() if own.same is not None},
        "changed": {name: own.changed for name, own in scores.items() if own.same is not None},
        "truncated": first.truncated,
        "signature": first.signature,
        "calibration": first.calibration,
    }


def write(
    options: argparse.Namespace,
    scored: ScoredPairs,
    metrics: Mapping[str, SimLLM],
    comparison: Comparison | None = None,
) -> None:
    """Write the HTML report about scored text pairs, and print its path to standard error.

    Args:
        options: The parsed options; `report` and `quiet` are read.
        scored: The scored pairs, which the report shows.
        metrics: A dict from the name of a column of scores to the learned metric that computed the column.
            The report uses these metrics for two things: to mark texts that are longer than a model's longest
            input, and to find, for some pairs, the words that make the two texts differ in meaning.
        comparison: The comparison of several systems that produced candidates; None for a single system.

    Raises:
        InputError: The input file was changed while it was read, so that the number of values for
            `--group-by` differs from the number of pairs. Or another program has just created the report's
            file, and `--overwrite` is not given.
    """
    from simllm.analysis.score_report import render_report

    if any(len(values) != len(scored) for values in scored.groups.values()):
        raise InputError(f"{options.jsonl}: changed while it was read")
    command = encodable(shlex.join(["simllm", *sys.argv[1:]]))
    if metrics:
        from simllm.analysis.score_report.explained_pairs import explain_changed_pairs
        from simllm.analysis.score_report.pair_flags import find_long_texts

        words, long = explain_changed_pairs(metrics, scored), find_long_texts(metrics, scored.texts)
        scored = replace(scored, changed_by=words, long_texts=long)
    output_file.check_output(
        options.report, (), options.overwrite
    )  # another program may have just written it
    output_file.write(options.report, render_report(scored, command, comparison))
    if not options.quiet:
        print(f"simllm: report {printable_path.printable(options.report)}", file=sys.stderr)
