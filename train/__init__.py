"""Training of the models; it runs from a checkout of the repository and is not installed with simllm."""

import sys
from types import TracebackType

from simllm.errors import InputError
from simllm.io.packages import require_linux


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """End a command whose imports failed like one whose work failed."""
    from train.runtime.command import report

    if (status := report(error)) is None:
        sys.__excepthook__(kind, error, trace)
    else:
        raise SystemExit(status)


# While Python looks for the module of `python -m train.…`, this is "-m". Commands import their packages at
# the top, before `run_command` could report that one is missing.
if sys.argv[0] == "-m":
    sys.excepthook = _end
    try:
        require_linux("training")
    except InputError as problem:  # the hook cannot import what reports it: that is in this package
        print(f"error: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
