"""`simllm repair import`: convert published sets of incorrect programs into items for `simllm repair run`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from simllm.cli.shared_options import CommonOptions
from simllm.io import output_file, packages, tables
from simllm.io.output_folder import OutputFolder

MODEL = None
FORMATS: tuple[str, ...] = ()  # always JSON lines
WALKED = ("folder",)
EXAMPLES = """example:
  simllm repair import tutorcode FOLDER -o items.jsonl
The FOLDER has an item in each file NAME.json, and the tests of a problem as cases/PROBLEM/*.json: in each
file a JSON object with input and output. The tiers of the problems come from FOLDER/tiers.config.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm repair import`."""

    set: str
    folder: Path
    tiers: Path | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm repair import` to its parser."""
    command.add_argument("set", choices=("tutorcode",), help="the published set")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="folder with the files of the set")
    command.add_argument(
        "--tiers", type=Path, metavar="FILE", help="lines of problem, topic and tier; default: tiers.config"
    )


def run(options: Options) -> None:
    """Run `simllm repair import`: write a published set of incorrect programs as JSON lines."""
    with packages.require_repair_extra():
        from simllm.repair.items import read_tutorcode
    if options.output is not None:
        output_file.check_output(options.output, options.overwrite)
        OutputFolder(options.output).check_apart([options.folder])
    tables.show(read_tutorcode(options.folder, options.tiers), options.output)
