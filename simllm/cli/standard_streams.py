"""Preparation of standard input, standard output and standard error at the start of a command.

Closed streams are replaced. Printed characters that the locale cannot encode become backslash escapes.
"""

from __future__ import annotations

import io
import os
import sys


def prepare_streams() -> None:
    """Replace closed standard streams, and escape printed characters that the locale cannot encode.

    A replaced standard input is empty, and a replaced standard error discards what is written to it. Writing
    to a replaced standard output fails, so that no result is lost silently.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:  # a read-only stream, so that writing fails and no result is lost unseen
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
