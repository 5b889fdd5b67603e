"""Main function of the command `simllm`, which prints errors and warnings and returns the exit status."""

from __future__ import annotations

import os
import sys
import warnings

from simllm.cli import parse
from simllm.errors import InputError
from simllm.io.tables import on_one_line


def main(arguments: list[str] | None = None) -> int:
    """Run the command `simllm`, and return its exit status.

    Args:
        arguments: The command-line words after `simllm`; None for the command line of this process.

    Returns:
        0 for success, 1 for an incomplete result, 2 for bad input, 130 after Ctrl+C, and 141 if standard
        output is a pipe whose reader has ended.

    Raises:
        SystemExit: The arguments ask for help or the version (status 0), or an option is wrong (status 2).
    """
    options = parse(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning if not options.quiet else lambda *_, **__: None
        try:
            status: int | None = options.run(options)
            sys.stdout.flush()
        except InputError as error:
            print(f"simllm: error: {on_one_line(str(error))}", file=sys.stderr)
            return 2
        except OSError as error:
            # Drop the rest of standard output; otherwise Python prints an error when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has ended
                return 141
            where = error.filename or "standard output"
            print(f"simllm: error: {where}: cannot be written ({error.strerror})", file=sys.stderr)
            return 2
        except KeyboardInterrupt as stop:
            print("simllm: interrupted", *stop.args, file=sys.stderr)
            return 130
    return status or 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"simllm: warning: {on_one_line(str(message))}", file=sys.stderr)
