"""Printing of the mean score to standard error beside TSV tables."""

from __future__ import annotations

import argparse
import sys

from simllm.io.number_format import format_count


def print_mean(
    options: argparse.Namespace, format_: str, pairs: int, mean: tuple[str, float], signature: str
) -> None:
    """Print mean and signature to standard error, because a TSV table has no place for them.

    `mean` is the name of the mean, such as "mean raw score", and its value.
    """
    if format_ == "tsv" and not options.quiet:
        name, value = mean
        print(f"simllm: {format_count(pairs, 'pair')}, {name} {value:.4f}, {signature}", file=sys.stderr)
