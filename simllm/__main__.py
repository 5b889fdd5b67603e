"""Entry point of the command `simllm` and of `python -m simllm`."""

from __future__ import annotations

import os
import sys

from simllm.cli.exit_status import main
from simllm.cli.standard_streams import prepare_streams

# By default oneDNN and PyTorch each cache the kernels of 1,024 shapes, which takes half a gigabyte and
# saves no time, because texts of similar length share a shape. The limit holds for the whole process, so
# the command sets it, not the library.
_KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def run() -> int:
    """Set up streams and environment variables, run the command `simllm`, and return its exit status."""
    prepare_streams()
    for cache in _KERNEL_CACHES:
        os.environ.setdefault(cache, "16")
    return main()


if __name__ == "__main__":
    sys.exit(run())
