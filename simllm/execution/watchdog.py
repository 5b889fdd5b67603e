"""End of commands that run outside of the sandbox, such as a test suite, if this process is killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from types import TracebackType

# A process of its own, because a process that is killed cannot end its children. It reads the number of each
# process group when the group begins, and again when it ends; at the end of its input it kills the others.
_PROGRAM = """
import os, signal, sys
running = set()
for line in sys.stdin:
    running ^= {int(line)}
for group in running:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Watchdog:
    """Kills the process groups that it watches at the end of a `with` block, or of this process."""

    def __enter__(self) -> Watchdog:
        self._process = subprocess.Popen(
            # Isolated and without site packages: it starts fast, and runs none of the user's code.
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._process.communicate()

    def tell(self, group: int) -> None:
        """Watch a process group; the second call for the same group ends that."""
        pipe = self._process.stdin
        with contextlib.suppress(BrokenPipeError, ValueError):
            if pipe is not None:
                pipe.write(b"%d\n" % group)
                pipe.flush()
