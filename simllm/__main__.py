"""Entry point of the command `simllm` and of `python -m simllm`."""

from __future__ import annotations

import io
import os
import sys

from simllm.cli import main

# By default oneDNN and PyTorch each cache the kernels of 1,024 shapes, which takes half a gigabyte and
# saves no time, because texts of similar length share a shape. The limit holds for the whole process, so
# the command sets it, not the library.
_KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def run() -> int:
    """Set up streams and environment variables, run the command `simllm`, and return its exit status."""
    _prepare_streams()
    for cache in _KERNEL_CACHES:
        os.environ.setdefault(cache, "16")
    return main()


def _prepare_streams() -> None:
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


if __name__ == "__main__":
    sys.exit(run())
