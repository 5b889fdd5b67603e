"""Printing of the mean score to standard error, if the scores are written as a TSV table.

Tables in other formats contain the mean score and the signature, but a TSV table does not. The signature is a
text that names everything that can change a score. It is printed, too.
"""

from __future__ import annotations

import argparse
import sys

from simllm.io.number_format import format_count


def print_mean(
    options: argparse.Namespace, format_: str, pairs: int, mean: tuple[str, float], signature: str
) -> None:
    """Print the mean score and the signature to standard error if the output table is TSV.

    Tables in other formats contain the mean score and the signature. Therefore, nothing is printed for them.
    Nothing is printed with the option `--quiet`, either.

    Args:
        options: The parsed options; `quiet` is read.
        format_: The format of the table: "text", "tsv" or "json".
        pairs: The number of pairs whose mean score is printed.
        mean: The name of the mean, such as "mean raw score", and its value.
        signature: The signature of the scores: text that names everything that can change a score.
    """
    if format_ == "tsv" and not options.quiet:
        name, value = mean
        print(f"simllm: {format_count(pairs, 'pair')}, {name} {value:.4f}, {signature}", file=sys.stderr)
