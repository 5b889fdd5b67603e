"""Training of the models; it runs from a checkout of the repository and is not installed with simllm."""

import sys
from types import TracebackType

from simllm.io.packages import missing_package


def _one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the command that installs a missing package instead of a traceback, and exit with status 2."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if not name or name.partition(".")[0] in ("train", "simllm"):
        sys.__excepthook__(kind, error, trace)
        return
    print(f"error: {missing_package(name, 'train,code,eval')}", file=sys.stderr)
    raise SystemExit(2)


# While Python looks for the module of `python -m train.…`, this is "-m". The commands import their packages
# at the top, before any code of their own could catch the error.
if sys.argv[0] == "-m":
    sys.excepthook = _one_line
