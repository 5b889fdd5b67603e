"""The frame of every command: its standard streams, warnings, errors and exit status."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator

from simllm.cli.parser import parse
from simllm.cli.shared_options import guarded_outputs
from simllm.errors import InputError, OptionError
from simllm.io.tables import on_one_line

STANDARD_OUTPUT = "standard output"


def prepare_streams() -> None:
    """Replace closed standard streams, and escape printed characters that the locale cannot encode."""
    # Python sets a stream to None if its descriptor is closed, as by `>&-`.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:  # a read-only stream, so that writing fails and no result is lost unseen
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    # Tests and notebooks replace the streams by other classes.
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        old = sys.stdout
        lines, through, encoding = old.line_buffering, old.write_through, old.encoding
        sys.stdout = _Output(old.detach(), encoding, "backslashreplace", None, lines, through)
        sys.__stdout__ = sys.stdout  # type: ignore[misc]  # shutil asks it for the width of the terminal


class _Output(io.TextIOWrapper):
    """Standard output, whose errors carry its name in place of a file name."""

    def write(self, text: str, /) -> int:
        with _named_errors():
            return super().write(text)

    def flush(self) -> None:
        with _named_errors():
            super().flush()


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Without a name, an error of standard output looks like any other OSError.
        error.filename = STANDARD_OUTPUT
        raise


_INTERRUPTED, _READER_ENDED = 130, 141
_LONGEST_MESSAGE = 2000  # characters; a message may quote what a user or a file says


def main(arguments: list[str] | None = None) -> int:
    """Run the command `simllm`, and return its exit status.

    The status is 0 for success, 1 for an incomplete result, 2 for bad input, 130 after Ctrl+C, and 141 if
    standard output is a pipe whose reader has ended. After SIGTERM, the process cleans up and ends by the
    signal. Help, the version and wrong options raise `SystemExit`.
    """
    with warnings.catch_warnings():
        # PYTHONWARNINGS=error is meant for tests of libraries: it would end a command with a traceback.
        warnings.filters[:] = [  # type: ignore[index]
            ("default" if action == "error" else action, *rest) for action, *rest in warnings.filters
        ]
        options = argparse.Namespace(flags={})
        try:
            options = _parse(arguments)
            # A library may repeat a warning for each batch.
            shown = set[str]()
            warnings.showwarning = lambda message, *_, **__: _show_warning(str(message), options.quiet, shown)
            _check_working_folder()
            with guarded_outputs(options):
                status: int | None = options.run(options)
            # Here, not at exit of Python, where an error can no longer change the status.
            sys.stdout.flush()
        except InputError as error:
            message = error.with_flags(options.flags) if isinstance(error, OptionError) else error
            _say(f"error: {message}")
            return 2
        except OSError as error:
            return _end_after(error)
        except KeyboardInterrupt as stop:
            _say(" ".join(["interrupted", *map(str, stop.args)]))
            return _INTERRUPTED
    return status or 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    try:
        return parse(sys.argv[1:] if arguments is None else arguments)
    except SystemExit:  # after --help
        sys.stdout.flush()
        raise


def _show_warning(message: str, quiet: bool, shown: set[str]) -> None:
    """Print a warning, unless the same warning was printed before."""
    if not quiet and message not in shown:
        shown.add(message)
        _say(f"warning: {message}")


def _say(message: str) -> None:
    """Print a message as one line on standard error, without control characters."""
    line = on_one_line(message)
    if len(line) > _LONGEST_MESSAGE:
        line = line[: _LONGEST_MESSAGE - 1] + "…"
    with contextlib.suppress(OSError):  # nobody can be told that standard error is full
        print(f"simllm: {line}", file=sys.stderr, flush=True)


def _end_after(error: OSError) -> int:
    """Report an error of the operating system, and return the exit status of the command."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename == STANDARD_OUTPUT:
        # Drop the rest of standard output; otherwise Python prints an error when it exits.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has ended
            return _READER_ENDED
        reason = f"cannot be written ({reason})"
    files = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    _say(f"error: {': '.join([*files, reason])}")
    return 2


def _check_working_folder() -> None:
    """Refuse to run in a working folder that was removed; libraries then fail in odd ways."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError as error:
        raise InputError(f"the working folder cannot be read ({error.strerror})") from None
