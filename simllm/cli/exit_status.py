"""Main function of the command `simllm`, which prints errors and warnings and returns the exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

from simllm.cli import parse
from simllm.cli.common_options import guarded_outputs
from simllm.errors import InputError
from simllm.io.tables import on_one_line


def main(arguments: list[str] | None = None) -> int:
    """Run the command `simllm`, and return its exit status.

    Args:
        arguments: The command-line words after `simllm`; None for the command line of this process.

    Returns:
        0 for success, 1 for an incomplete result, 2 for bad input, 130 after Ctrl+C, and 141 if standard
        output is a pipe whose reader has ended. After SIGTERM, the process cleans up and ends by the signal.

    Raises:
        SystemExit: The arguments ask for help or the version (status 0), or an option is wrong (status 2).
    """
    try:
        options = _parse(arguments)
    except OSError as error:
        return _report_output_failure(error)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning if not options.quiet else lambda *_, **__: None
        try:
            _check_current_folder()
            with _unwinding_when_killed(), guarded_outputs(options):
                status: int | None = options.run(options)
            sys.stdout.flush()
        except InputError as error:
            print(f"simllm: error: {on_one_line(str(error))}", file=sys.stderr)
            return 2
        except OSError as error:
            return _report_output_failure(error)
        except KeyboardInterrupt as stop:
            print("simllm: interrupted", *stop.args, file=sys.stderr)
            return 130
        except _KilledError as kill:
            signal.raise_signal(kill.number)
    return status or 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line; after `--help`, also wait until the help is written."""
    try:
        return parse(sys.argv[1:] if arguments is None else arguments)
    finally:
        sys.stdout.flush()


def _report_output_failure(error: OSError) -> int:
    """Say that output cannot be written, and return the exit status."""
    # Drop the rest of standard output; otherwise Python prints an error when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has ended
        return 141
    where = error.filename or "standard output"
    print(f"simllm: error: {where}: cannot be written ({error.strerror})", file=sys.stderr)
    return 2


def _check_current_folder() -> None:
    """Check that the current folder exists; without it, MKL ends the process with a message of its own."""
    try:
        Path.cwd()
    except OSError as error:
        raise InputError(f"the current folder cannot be used ({error.strerror}); go to another") from None


_MOST_SECONDS_TO_UNWIND = 10


class _KilledError(BaseException):
    """A signal that ends the process, after temporary files and locks are removed and child processes end."""

    def __init__(self, number: int) -> None:
        """Remember the number of the signal."""
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _unwinding_when_killed() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into `_KilledError` during a `with` block; a second signal kills at once."""
    process = os.getpid()
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) == signal.SIG_DFL
    ]

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != process:  # a worker process, which has nothing to clean up
            signal.raise_signal(number)
        # Python drops an exception that is raised in a destructor; then the signal comes once more.
        again = threading.Timer(_MOST_SECONDS_TO_UNWIND, os.kill, (process, number))
        again.daemon = True
        again.start()
        raise _KilledError(number)

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"simllm: warning: {message}", file=sys.stderr)
