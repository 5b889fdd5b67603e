"""The frame of every command: its standard streams, the files it must not touch, warnings and exit status."""

from __future__ import annotations

import argparse
import contextlib
import errno
import glob
import io
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simllm.cli.parser import parse
from simllm.cli.shared_options import CONTINUES, take
from simllm.errors import IncompleteError, InputError, OptionError
from simllm.io import output_file, packages, partial_file
from simllm.io.output_folder import OutputFolder
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
        if os.name == "nt" and not old.isatty():
            encoding = "utf-8"  # as in all files that simllm writes
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


_FILES, _FOLDERS = ("output", "report"), ("out", "web")  # the options that name what a command writes


@contextlib.contextmanager
def _guarded_outputs(options: argparse.Namespace) -> Iterator[None]:
    """Protect what a command reads and writes while the command runs.

    First, every path that an option names is compared with the outputs. Then the output files are locked.
    Commands that write folders lock the folders themselves.

    Raises:
        InputError: An output would replace something that the command reads, or another process is writing
            it.
    """
    given = vars(options)
    files = [path for name in _FILES if (path := given.get(name)) is not None]
    folders = [path for name in _FOLDERS if (path := given.get(name)) is not None]
    inputs = _named_paths(options) if files or folders else []
    for folder in folders:
        OutputFolder(folder).check()
        target = output_file.real(folder)
        # A folder inside a folder that is read replaces nothing; some commands refuse it all the same.
        inside = [path for path in inputs if output_file.is_above(target, output_file.real(path))]
        OutputFolder(folder).check_apart(inside)
    with contextlib.ExitStack() as locks:
        for file in {output_file.real(file): file for file in files}.values():  # no file is locked twice
            if _is_folder(file):
                continue  # a command that expects a file refuses the folder
            output_file.check_unread(file, inputs)
            target, mode = output_file.real(file), output_file.mode_of(file)
            # A partial file may lie in a folder that is read: an earlier run of the same command wrote it.
            no_folders = (path for path in inputs if not _is_folder(path))
            output_file.check_unread(partial_file.path_of(target), no_folders)
            if os.access(target.parent, os.W_OK) and (mode == 0 or stat.S_ISREG(mode)):
                # A lock of its own, because a command that resumes holds the usual one for its partial file.
                locks.enter_context(output_file.locked(target, ".output.lock"))
        yield


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(output_file.mode_of(path))


def _named_paths(options: argparse.Namespace) -> list[Path]:
    """Return the files and folders that options name for reading, the default model included."""
    found = list[Path]()
    # All options rather than a list of them: a new option that names a file is protected, too.
    for name, value in vars(options).items():
        if name in (*_FILES, *_FOLDERS, *options.text_arguments):
            continue
        paths = [path for one in (value if isinstance(value, list) else [value]) for path in _paths_in(one)]
        found += (path for path in paths if name not in options.walked or not _is_folder(path))
    # None means the included model; a command without --model has no such attribute.
    if getattr(options, "model", "") is None:
        found.append(packages.default_model())
    return found


def _paths_in(value: Any) -> list[Path]:
    """Return the existing paths in the value of an option; a glob pattern gives those that it matches."""
    if not isinstance(value, str | Path):
        return []
    whole = str(value)
    # A path may stand in a list "A,NAME=PATH", which options such as --metrics take.
    words = [whole, *whole.split(",")]
    words += [word.partition("=")[2] for word in words]
    found = [Path(word) for word in words if word and output_file.mode_of(Path(word))]
    if isinstance(value, Path) and not found:
        found = [value, *map(Path, glob.glob(whole, recursive=True))]  # noqa: PTH207 (also absolute patterns)
    return found


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
            with _guarded_outputs(options):
                status: int | None = options.module.run(take(options.module.Options, vars(options)))
            # Here, not at exit of Python, where an error can no longer change the status.
            sys.stdout.flush()
        except InputError as error:
            message = error.with_flags(options.flags) if isinstance(error, OptionError) else error
            _say(f"error: {message}")
            return 2
        except IncompleteError as error:
            _say(f"error: {error}; {CONTINUES}")
            return 1
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
        # The reader, such as `head`, has ended; Windows has another error for that.
        if isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL):
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
