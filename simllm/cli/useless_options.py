"""Refusal of command-line options that would have no effect in combination with the other options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from simllm.errors import InputError


def refuse(options: argparse.Namespace, defaults: Mapping[str, Any], reason: str) -> None:
    """Check that options have their default values, because other values would have no effect.

    Args:
        options: The parsed options of a command.
        defaults: A dict from the name of each such option, as in `options`, to its default.
        reason: The end of the error message, such as "goes with --jsonl FILE".

    Raises:
        InputError: An option has a value that is not its default.
    """
    for name, default in defaults.items():
        if getattr(options, name) != default:
            raise InputError(f"--{name.replace('_', '-')} {reason}")
