"""The sandbox, which runs untrusted commands under limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.run_messages import Limits, Outcome, Request
from simllm.execution.self_attack import attack, find_bubblewrap, raise_if_breached
from simllm.execution.supervisor_pool import SupervisorPool

_DEFAULT_LIMITS = Limits()


class Sandbox:
    """A place to run untrusted commands.

    A command runs in bubblewrap: as an ordinary user without rights, without network, with a read-only
    system, in a working folder in memory, with a clean environment. When a run is over, no process and no
    file of it is left. A new sandbox first attacks itself, and refuses to work if it does not hold.

    Several threads may use a sandbox at the same time. Use it in a `with` block, or call `close`.

    Args:
        unsafe: Run commands without bubblewrap. They can then read and change what an ordinary user can.
        readable: Files and folders besides `/usr` that commands may read, under the same path.

    Attributes:
        contained: Whether commands are contained, that is, not `unsafe`.

    Raises:
        InputError: Commands are not contained on this machine; the message says what to install. Or a
            `readable` path does not exist.

    Examples:
        >>> with Sandbox() as sandbox:
        ...     built = sandbox.run(["javac", "A.java"], {"A.java": source}, keep=["*.class"])
        ...     outcomes = [sandbox.run(["java", "A"], built.files, stdin) for stdin in inputs]
    """

    def __init__(self, unsafe: bool = False, readable: Sequence[Path] = ()) -> None:
        self.contained = not unsafe
        if missing := [path for path in readable if not path.exists()]:
            raise InputError(f"{missing[0]}: does not exist, so commands cannot read it")
        names = [str(path.resolve()) for path in readable]
        self._pool = SupervisorPool(None if unsafe else find_bubblewrap(), names)
        if self.contained:
            try:
                raise_if_breached(attack(self._pool, names))
            except BaseException:
                self.close()
                raise

    def run(
        self,
        argv: Sequence[str],
        files: Mapping[str, bytes] | None = None,
        stdin: bytes = b"",
        limits: Limits = _DEFAULT_LIMITS,
        keep: Sequence[str] = (),
    ) -> Outcome:
        """Run a command in a new working folder, which is the current folder and HOME of the command.

        Args:
            argv: The program and its arguments. Programs are found in /usr/bin, /bin and /usr/local/bin.
            files: The content of each file in the working folder, by relative path. All are executable.
            stdin: The bytes of standard input.
            limits: The limits of the run.
            keep: Patterns, as in `fnmatch`, of relative paths. The files that match are returned in the
                outcome, and can be the `files` of further runs. `*` matches `/`, too.

        Raises:
            InputError: A file is to be outside the working folder.
            SandboxError: The sandbox failed, so nothing is known about the command.
        """
        return self._pool.run(Request(argv, files or {}, stdin, limits, keep))

    def close(self) -> None:
        """End all runs and the processes that supervise them."""
        self._pool.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
