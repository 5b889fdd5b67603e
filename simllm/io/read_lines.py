"""Reading of text files line by line: plain or compressed (`.gz`) files, and standard input."""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from simllm.errors import InputError


def lines(file: Path) -> Iterator[tuple[int, str]]:
    r"""Yield each line of a UTF-8 text file with its line number, which starts at 1.

    Lines end with `\n` or `\r\n`, which are removed. A byte-order mark is removed, too.

    Args:
        file: The file. It is decompressed if its name ends in `.gz`. The name `-` stands for standard
            input.

    Raises:
        InputError: The file cannot be read or decoded.
    """
    number = 0
    try:
        with _opened(file) as data:
            for number, line in enumerate(data, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}, line {number}: not UTF-8 ({error.reason})") from None
    except EOFError:
        raise InputError(f"{file}: ends in the middle, after line {number}") from None
    except zlib.error as error:
        raise InputError(f"{file}: is damaged after line {number} ({error})") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None


def is_stdin(file: Path) -> bool:
    """Return whether a file name is `-`, which stands for standard input."""
    return str(file) == "-"


def _opened(file: Path) -> contextlib.AbstractContextManager[Iterable[bytes]]:
    """Open a file to read bytes; `-` means standard input, and a file named `*.gz` is decompressed."""
    if is_stdin(file):
        return contextlib.nullcontext(sys.stdin.buffer)
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")
