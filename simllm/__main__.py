"""Entry point of the command `simllm` and of `python -m simllm`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

# Nothing else is imported here: an interrupt during the imports of a command must be one line, too.

# These settings hold for the whole process, so the command makes them, not the library.
_SETTINGS = {
    # By default oneDNN and PyTorch each cache the kernels of 1,024 shapes, which takes half a gigabyte and
    # saves no time, because texts of similar length share a shape.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
    "LRU_CACHE_CAPACITY": "16",
    # By default, a thread that waits for others keeps its processor. If other programs run, this makes
    # scoring several times slower.
    "OMP_WAIT_POLICY": "passive",
}
_ENDING = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))  # Windows has no SIGHUP
_MOST_SECONDS_TO_UNWIND = 10


def run() -> int:
    """Set up signals, streams and environment variables, run `simllm`, and return its exit status."""
    received: list[int] = []
    process = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
        if os.getpid() != process:  # a forked child
            os.kill(os.getpid(), number)
        received.append(number)
        # Python drops an exception that is raised in a destructor; then the signal comes once more.
        again = threading.Timer(_MOST_SECONDS_TO_UNWIND, os.kill, (process, number))
        again.daemon = True
        again.start()
        raise KeyboardInterrupt

    for number in _ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # nohup ignores SIGHUP
            signal.signal(number, interrupt)
    try:
        from simllm.cli.main import main, prepare_streams

        prepare_streams()
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        status = main()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("simllm: interrupted", file=sys.stderr)
        status = 130
    if not received or status != 130:
        return status
    # `python -m` ends by SIGINT in place of this status if C code of a library was interrupted while it ran
    # Python code; running code again clears CPython's note of it.
    exec("")
    return 128 + received[0]


if __name__ == "__main__":
    sys.exit(run())
