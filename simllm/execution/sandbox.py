"""The sandbox, which runs untrusted commands in isolation and under limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.bubblewrap import find_bubblewrap
from simllm.execution.isolation import attack, raise_if_breached
from simllm.execution.limits import Limits
from simllm.execution.messages import Outcome, Request
from simllm.execution.supervisor_pool import SupervisorPool

_DEFAULT_LIMITS = Limits()


class Sandbox:
    """A sandbox for untrusted commands.

    Commands run in bubblewrap: as an ordinary user without rights, without network, with read-only system
    folders, in a working folder in memory, and with few environment variables. At the end of a run, all its
    processes are killed and its files removed. A new sandbox first attacks itself, and raises an error if an
    attack succeeds.

    Several threads may use a sandbox at the same time. Use it in a `with` block, or call `close` at the end.

    Args:
        unsafe: Run commands without bubblewrap. They can then read and change whatever an ordinary user can.
        readable: Files and folders besides `/usr` that commands may read, under the same paths as outside.

    Attributes:
        contained: Whether commands are isolated by bubblewrap; the opposite of `unsafe`.

    Raises:
        InputError: A `readable` path does not exist, the sandbox does not start, or an attack succeeded. In
            the last two cases, the message says what to install.

    Examples:
        Compile a Java program once, and run it on several inputs:

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
        """Run a command in a new working folder, which is also the HOME folder of the command.

        Args:
            argv: The program and its arguments. Programs are searched in /usr/bin, /bin and /usr/local/bin.
            files: The content of each (executable) file to write into the working folder, by relative path.
            stdin: The bytes of standard input.
            limits: The limits of the run.
            keep: Patterns for relative paths, as in `fnmatch`; `*` also matches `/`. After the run, matching
                files are read from the working folder into `Outcome.files`.

        Raises:
            InputError: The path of a file leads out of the working folder.
            SandboxError: The sandbox failed, so nothing is known about the command.
        """
        return self._pool.run(Request(argv, files or {}, stdin, limits, keep))

    def close(self) -> None:
        """Stop all runs, and the supervisors that control them."""
        self._pool.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
