"""`simllm frequencies`: count how many references contain each token, to give rare tokens more weight."""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files

FORMATS: tuple[str, ...] = ()  # the table is always JSON
HELP = "count how many references contain each token, to weigh tokens"
EXAMPLES = """example:
  simllm frequencies references.txt -o frequencies.json
  simllm score -c c.txt -r r.txt --similarity f1 --frequencies frequencies.json
"""


def add_options(frequencies: argparse.ArgumentParser) -> None:
    """Add the arguments of `simllm frequencies` to its parser."""
    frequencies.add_argument("references", type=Path, metavar="FILE", help="references, one per line")


def run(options: argparse.Namespace) -> None:
    """Run `simllm frequencies` with the parsed options: count tokens and write the counts as JSON."""
    if options.output is None:
        raise InputError("expected -o FILE, to write the table to")
    files.check_output(options.output, [options.references], options.overwrite)
    from simllm.metric import SimLLM

    metric = SimLLM(options.model)
    table = metric.count_frequencies(line for _, line in files.lines(options.references))
    if not table.documents:
        raise InputError(f"{options.references}: empty; expected one text per line")
    table.save(options.output)
