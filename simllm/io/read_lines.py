"""Reading of text files line by line: plain or compressed (`.gz`) files, and standard input."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from simllm.errors import InputError

LONGEST_LINE = 1 << 26  # bytes; a file without line ends must not fill the memory
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def lines(file: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the number, from 1, and the text of each line of a UTF-8 file.

    Line ends (`\n` or `\r\n`) and a byte-order mark are removed. A line may have 64 MiB.
    """
    number = 0
    try:
        with _opened(file) as data:
            for number, line in enumerate(iter(lambda: data.readline(LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    longest = f"{LONGEST_LINE >> 20} MiB"
                    raise InputError(
                        f"{file}, line {number}: has more than {longest}; expected one text per line"
                    )
                if number == 1 and (line.startswith(_UTF_16) or b"\0" in line):
                    raise InputError(f"{file}: is UTF-16 or binary; expected text in UTF-8")
                # Only at the start of the file is U+FEFF a byte-order mark.
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


def _opened(file: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if is_stdin(file):
        return contextlib.nullcontext(sys.stdin.buffer)
    if file.suffix == ".gz":
        return gzip.open(file)  # type: ignore[return-value]  # a GzipFile reads like a BinaryIO
    return file.open("rb")
