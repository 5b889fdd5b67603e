"""The exit status of command-line tools, such as 2 for bad input.

`train.pretrain`, `train.distill` and `train.contrastive` use `train.runtime.training_exit_status` instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from simllm.errors import InputError
from train.runtime.signal_handlers import STOPPED_BY_KEYBOARD, Interrupted


def run_tool(work: Callable[[], object]) -> int:
    """Run a tool's work and turn its errors into an exit status.

    Bad input or an interruption is printed as one line on standard error.

    Args:
        work: The function that does the tool's work. Its result is ignored.

    Returns:
        The exit status: 0 for success, 2 for bad input, 130 after Ctrl-C. It is 75 if another signal
        stopped a training run that `work` had started.
    """
    try:
        work()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Interrupted as interrupted:
        print(interrupted, file=sys.stderr)
        return interrupted.status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return STOPPED_BY_KEYBOARD
    return 0
