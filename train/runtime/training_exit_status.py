"""The exit status of a training run that ended with an error, and the printing of the error."""

from __future__ import annotations

import sys

from simllm.errors import InputError
from train.runtime.distributed import ReportedError
from train.runtime.gradient_clipping_and_divergence import DivergedError
from train.runtime.signal_handlers import Interrupted


def print_error(error: BaseException, is_first: bool) -> int:
    """Print in one line why a training run ended; raise unexpected errors again.

    A run may have several processes, and each of them may call this function. A `ReportedError` is not
    printed, because its cause is printed elsewhere.

    Args:
        error: The error that ended the run in this process.
        is_first: Whether this process has rank 0. If the training diverged or a signal stopped the run, only
            the process with rank 0 prints, so that the line appears once.

    Returns:
        The exit status of the run: 1 diverged, 2 bad input, 130 stopped by Ctrl-C, 75 stopped by another
        signal.
    """
    if isinstance(error, ReportedError):  # another process has printed it
        return 2
    if isinstance(error, InputError):
        print(f"error: {error}", file=sys.stderr)
        return 2
    if isinstance(error, DivergedError | Interrupted):
        if is_first:
            print("" if isinstance(error, Interrupted) else "error: ", error, sep="", file=sys.stderr)
        return error.status if isinstance(error, Interrupted) else 1
    raise error
