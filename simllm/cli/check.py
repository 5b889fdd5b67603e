"""`simllm check`: find documentation comments that do not fit their code, or no longer do after a change."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from simllm.cli import results, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, tables

if TYPE_CHECKING:
    from simllm.scoring.code import CodeReader

FORMATS = ("text", "json", "sarif", "github")
MODEL = ("FOLDER", "with --min-fall and --min-fit: a model folder; default: the included one")
EXAMPLES = """examples:
  simllm check src/
  simllm check src/ --since HEAD~1
  simllm check --range origin/main..HEAD --format github
  simllm check --since v1.2 --format sarif -o alarms.sarif
Without a range, each documented function is checked as it is. With --since REV, the files on the disk are
compared with the revision, with --range A..B two commits: only functions whose code changed and whose comment
did not, and comments that are new. Alarms need hard evidence, such as a parameter that is gone; --min-fall
and --min-fit add what the model finds, with more false alarms. Languages: Python, Java, JavaScript,
TypeScript, Go, Ruby, PHP and C++.
The exit status is 0 without alarms, 1 with alarms, 2 for bad input.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm check`."""

    paths: list[Path]
    since: str | None = None
    range: str | None = None
    min_fall: float | None = None
    min_fit: float | None = None
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm check` to its parser."""
    command.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="folders and source files; default: ."
    )
    either = command.add_mutually_exclusive_group()
    either.add_argument(
        "--since", metavar="REV", help="compare the files on the disk with a git revision, such as HEAD~1"
    )
    either.add_argument("--range", metavar="A..B", help="compare two commits, such as origin/main..HEAD")
    command.add_argument(
        "--min-fall", type=float, metavar="X",
        help="in a range: also an alarm if a change of the code lowers the fit of the comment by X or more",
    )  # fmt: skip
    command.add_argument(
        "--min-fit", type=float, metavar="X", help="also an alarm if the fit of the comment is less than X"
    )


def run(options: Options) -> int:
    """Run `simllm check`: print an alarm for each broken claim of a comment; return 1 if there are any."""
    output_file.check_output(options.output, options.overwrite)
    first, last = _range(options)
    with packages.require_code_extra():
        from simllm.analysis.comment_check.alarms import (
            FitLimits,
            alarms_of,
            to_github,
            to_json,
            to_sarif,
            to_text,
        )
        from simllm.analysis.comment_check.search import Search

    search, paths = Search(), options.paths or [Path()]
    cases = search.in_folders(paths) if first is None else search.in_range(paths, first, last)
    found = list(tqdm(cases, unit=" functions", disable=not options.has_bar))
    limits = FitLimits(options.min_fall, options.min_fit)
    alarms = alarms_of(found, _reader(options), limits)
    notes = search.tell_skipped()
    told = results.tell(notes)
    facts = {"files": search.files, "functions": search.functions, **told}
    formats = {
        "text": lambda: to_text(alarms),
        "json": lambda: to_json(alarms, facts),
        "sarif": lambda: to_sarif(alarms, notes),
        "github": lambda: to_github(alarms),
    }
    tables.show(formats[options.format or "text"](), options.output)
    if not options.quiet:
        files, functions = (
            tables.format_count(search.files, "file"),
            tables.format_count(search.functions, "function"),
        )
        what = "changed" if first is not None else "documented"
        alarmed = tables.format_count(len(alarms), "alarm")
        print(f"simllm: {alarmed} in {files} with {functions} {what}", file=sys.stderr)
    return 1 if alarms else 0


def _reader(options: Options) -> CodeReader | None:
    """Load the model if an option needs it."""
    if options.min_fall is None and options.min_fit is None:
        shared_options.refuse(options, ("model",), "goes with --min-fall or --min-fit")
        return None
    if options.min_fall is not None and options.since is None and options.range is None:
        raise InputError("--min-fall goes with --since or --range")
    for name, value in (("--min-fall", options.min_fall), ("--min-fit", options.min_fit)):
        if value is not None and not -1 <= value <= 1:  # the fit may be a cosine
            raise InputError(f"{name} {value:g}: expected a number from -1 to 1")
    from simllm.metric import SimLLM

    return SimLLM(options.model).code_reader


def _range(options: Options) -> tuple[str | None, str | None]:
    """Return the names of the first and the last revision; None for the files on the disk."""
    if options.range is None:
        return options.since, None
    first, dots, last = options.range.partition("..")
    if not dots or last.startswith("."):
        raise InputError(f"--range {options.range}: expected A..B, such as origin/main..HEAD")
    return first or "HEAD", last or "HEAD"
