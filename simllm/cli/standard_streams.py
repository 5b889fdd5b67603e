"""Preparation of standard input, standard output and standard error at the start of a command."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

STANDARD_OUTPUT = "standard output"


def prepare_streams() -> None:
    """Replace closed standard streams, and escape printed characters that the locale cannot encode."""
    # Python sets a stream to None if its descriptor is closed, as by `>&-`.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:  # a read-only stream, so that writing fails and no result is lost unseen
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    # Tests and notebooks replace the streams by other classes.
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        old = sys.stdout
        lines, through, encoding = old.line_buffering, old.write_through, old.encoding
        sys.stdout = _Output(old.detach(), encoding, "backslashreplace", None, lines, through)
        sys.__stdout__ = sys.stdout  # type: ignore[misc]  # shutil asks it for the width of the terminal


class _Output(io.TextIOWrapper):
    """Standard output, whose errors carry its name in place of a file name."""

    def write(self, text: str, /) -> int:
        with _named_errors():
            return super().write(text)

    def flush(self) -> None:
        with _named_errors():
            super().flush()


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Without a name, an error of standard output looks like any other OSError.
        error.filename = STANDARD_OUTPUT
        raise
