"""`simllm frequencies`: the table that weighs tokens in scores token by token."""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files

FORMATS: tuple[str, ...] = ()  # what it writes is JSON
HELP = "count how many references contain each token, to weigh tokens"
EXAMPLES = """example:
  simllm frequencies references.txt -o frequencies.json
  simllm score -c c.txt -r r.txt --similarity f1 --frequencies frequencies.json
"""


def add_options(frequencies: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    frequencies.add_argument("references", type=Path, metavar="FILE", help="references, one a line")


def run(options: argparse.Namespace) -> None:
    """Count, and save."""
    if options.output is None:
        raise InputError("expected -o FILE, to write the table to")
    files.check_output(options.output, [options.references], options.overwrite)
    from simllm.metric import SimLLM

    metric = SimLLM(options.model)
    found = metric.count_frequencies(line for _, line in files.lines(options.references))
    if not found.documents:
        raise InputError(f"{options.references}: empty; expected one text a line")
    found.save(options.output)
