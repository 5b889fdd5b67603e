"""A pool of supervisors, the processes that run commands in sandboxes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import simllm
from simllm.execution.messages import Outcome, Request, SandboxError, receive_outcome, send_request
from simllm.io.packages import require_linux

_PROGRAM = "import sys; sys.path.insert(0, {!r}); from simllm.execution.supervisor import main; main()"
_FOLDER = str(Path(simllm.__file__).parents[1])


class SupervisorPool:
    """Supervisors that run one command at a time each; a new one is started if none is idle.

    `bwrap` is the path of bubblewrap; None runs commands without a sandbox. Commands may read the `readable`
    paths besides the system folders.
    """

    def __init__(self, bwrap: str | None, readable: Sequence[str] = ()) -> None:
        require_linux("running programs")
        self._settings = json.dumps({"caller": os.getpid(), "bwrap": bwrap, "readable": list(readable)})
        self._lock = threading.Lock()
        self._all: set[subprocess.Popen[bytes]] = set()
        self._idle: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def run(self, request: Request) -> Outcome:
        """Run a command; several threads may do so at the same time.

        Raises:
            SandboxError: The command could not be run.
        """
        supervisor = self._take()
        assert supervisor.stdin
        assert supervisor.stdout
        try:
            send_request(supervisor.stdin, request)
            outcome = receive_outcome(supervisor.stdout)
        except SandboxError:  # the supervisor can be reused
            self._give_back(supervisor)
            raise
        except (EOFError, BrokenPipeError):
            status = self._end(supervisor)
            raise SandboxError(f"the supervisor of the sandbox ended with status {status}") from None
        except BaseException:  # such as Ctrl+C: the supervisor still runs the command, so it cannot be reused
            self._end(supervisor)
            raise
        self._give_back(supervisor)
        return outcome

    def close(self) -> None:
        """End all supervisors and the commands that they are running."""
        with self._lock:
            self._closed = True
            supervisors = list(self._all)
        for supervisor in supervisors:
            self._end(supervisor)

    def _take(self) -> subprocess.Popen[bytes]:
        # Starting under the lock, so that `close` misses no supervisor.
        with self._lock:
            if self._closed:
                raise SandboxError("the sandbox is closed")
            if self._idle:
                return self._idle.pop()
            # A supervisor needs only the path of Python's libraries; it must not get variables with API keys.
            environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
            command = [sys.executable, "-I", "-S", "-c", _PROGRAM.format(_FOLDER), self._settings]
            # Ctrl+C in the terminal is for this process, which then ends its supervisors.
            supervisor = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
            self._all.add(supervisor)
            return supervisor

    def _give_back(self, supervisor: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._idle.append(supervisor)

    def _end(self, supervisor: subprocess.Popen[bytes]) -> int:
        """Close the pipes, at whose end a supervisor kills its run and ends; return its exit status."""
        for stream in (supervisor.stdin, supervisor.stdout):
            if stream:
                with contextlib.suppress(OSError):  # bytes of a request that it did not read
                    stream.close()
        status = supervisor.wait()
        with self._lock:
            self._all.discard(supervisor)
        return status
