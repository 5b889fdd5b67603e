"""The process of the command `simllm`, also as `python -m simllm`: its streams and its environment."""

from __future__ import annotations

import io
import os
import sys

from simllm.cli import main

# oneDNN and PyTorch each keep the kernels of 1,024 shapes, which take half a gigabyte and save no time:
# texts of similar length share a shape. Both read these limits when they start.
_KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def run() -> int:
    """Prepare the process, then run the command line; return the exit status."""
    _prepare_streams()
    for cache in _KERNEL_CACHES:
        os.environ.setdefault(cache, "16")
    return main()


def _prepare_streams() -> None:
    """Escape what the locale cannot show, and stand in for streams that were closed before the start."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:  # writing fails, as it must: the results would be lost
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(run())
