"""Writing of long tables row by row: text for a person, TSV or JSON for a program.

The rows of a file are collected in `FILE.partial`, which takes the place of FILE when it is
whole. An interrupt leaves the rows that were written, as valid TSV or JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from simllm.errors import InputError
from simllm.io import files, resume, tables
from simllm.io.resume import Kept, Measure

_STOPS = (signal.SIGINT, signal.SIGTERM)


class Rows:
    """An open table: `write` rows, set the `summary`, leave the context.

    `skip` rows were written before: TSV is continued after them, without a header. Raises
    InputError if the output cannot be written, another process is writing it, it does not hold
    the skipped rows, or a file would be lost.
    """

    def __init__(self, columns: Sequence[str], format_: str | None, output: Path | None, skip: int) -> None:
        self.columns, self.output = columns, files.real(output) if output else None
        self.format = tables.format_for(format_, output)
        self.done = skip
        self.summary: dict[str, Any] = {}
        self.kept: Kept | None = None  # the rows of an earlier run, which are continued
        self._widths: list[int] = []
        if skip < 0 or (skip and self.format != "tsv"):
            raise InputError("--skip expects a number of pairs that are done, and -f tsv")
        self._partial: Path | None = None
        if self.output and not (self.output.exists() and not self.output.is_file()):
            self._partial = resume.partial(self.output)

    def __enter__(self) -> Rows:
        self._first = self.done == 0
        self._target: FileIO | None = None
        self._end_of_rows = 0  # in bytes
        self._writing = self._stopped = self._wrote = self._begun = False
        header = tables.tsv([self.columns])
        with contextlib.ExitStack() as held:
            if self._partial and self.output:
                held.enter_context(files.locked(self.output))
                self._before = _state(self.output)
                if self.done:
                    self.kept = resume.kept(self._partial, self.columns, header, self.done)
                else:
                    resume.refuse(self._partial, header if self.format == "tsv" else None)
            for number in _STOPS:
                held.callback(signal.signal, number, signal.signal(number, self._interrupt))
            self._held = held.pop_all()
        return self

    def begin(self, measure: Measure, skipped: Sequence[Sequence[str]]) -> None:
        """Note what decides on the scores, before the first row.

        Args:
            measure: What decides on the scores; an earlier run must have noted the same.
            skipped: Ids and texts of the last `COMPARED` rows that are skipped; an earlier run must
                have written the same.

        Raises InputError if the rows of an earlier run differ.
        """
        if self.kept:
            self.kept.check(measure, skipped)
        if self._partial:
            with _written(self.output):
                if self.kept:
                    self.kept.cut()
                else:
                    resume.begin(self._partial, measure)
        self._begun = True

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows; an interrupt waits until all of them are written."""
        rows = list(rows)
        self._writing = True
        try:
            self._say(getattr(self, "_" + self.format)(rows, self._first))
            self._first = False
            self.done += len(rows)
            self._wrote = True
        finally:
            self._writing = False
        if self._stopped:
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> None:
        self._stopped = True
        if not self._writing:
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:  # the lock and the signals, until all is in its place
            if kind is not None:
                self._stop()
            else:
                try:
                    self._finish()
                except InputError as failure:
                    error = failure
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(self._how_to_go_on()) from None
        if isinstance(error, InputError):
            stopped = f"; stopped {self._how_to_go_on()}" if self._wrote else ""
            raise InputError(f"{error}{stopped}") from None

    def _finish(self) -> None:
        """Put the whole table in its place."""
        if self._first:
            self.write([])
        self._say(self._end(self.summary))
        self._close()
        if self._partial and self.output:
            if _state(self.output) != self._before:
                raise InputError(f"{self.output}: was changed by something else meanwhile")
            with _written(self.output):
                files.sync(self._partial)
                self._partial.replace(self.output)
                resume.forget(self._partial)

    def _stop(self) -> None:
        """Leave the rows that were written: an error is no reason to lose them."""
        if self.done and not self._first:
            with contextlib.suppress(InputError, OSError):  # it may be the error that stopped the table
                self._say(self._end({"interrupted": True}))
        with contextlib.suppress(InputError):
            self._close()
        if self._partial and self._begun and not self.done:
            if self._target:
                self._partial.unlink(missing_ok=True)
            resume.forget(self._partial)

    def _close(self) -> None:
        if self._target:
            with _written(self.output):
                self._target.close()

    def _how_to_go_on(self) -> str:
        where = f" in {self._partial}" if self._partial else ""
        done = f"after {self.done:,} pairs, which are{where or ' written'}"
        if self.format != "tsv" or not self.done:
            return f"{done}; only TSV (-f tsv) can be resumed" if self.done else "before the first pairs"
        return (
            f"{done}; the same command with --skip {self.done}{'' if where else ', appended (>>),'} goes on"
        )

    def _say(self, text: str) -> None:
        if self.output is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        with _written(self.output):
            if self._target is None:
                self._target = self._opened()
            self._append(self._target, text.encode())

    def _opened(self) -> FileIO:
        if self._partial is None:  # a pipe or a device
            return FileIO(str(self.output), "w")
        target = FileIO(str(self._partial), "a" if self.kept else "x")
        self._end_of_rows = target.seek(0, os.SEEK_END)
        if self.output and self.output.exists():  # it is to be replaced
            os.fchmod(target.fileno(), self.output.stat().st_mode & 0o777)
        return target

    def _append(self, target: FileIO, data: bytes) -> None:
        """Write `data`, all of it or, to a file, nothing."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[target.write(rest) or 0 :]
        except OSError:
            if self._partial:
                target.truncate(self._end_of_rows)
                target.seek(self._end_of_rows)
            raise
        self._end_of_rows += len(data)

    def _tsv(self, rows: list[Sequence[Any]], first: bool) -> str:
        return tables.tsv([self.columns, *rows] if first else rows)

    def _json(self, rows: list[Sequence[Any]], first: bool) -> str:
        shown = [json.dumps(tables.finite(dict(zip(self.columns, row, strict=True)))) for row in rows]
        return ('{"rows": [' if first else "," * bool(rows)) + ",".join("\n" + row for row in shown)

    def _text(self, rows: list[Sequence[Any]], first: bool) -> str:
        if first:
            self._widths = tables.widths([self.columns, *rows])
            return tables.header(self.columns, self._widths) + tables.lines(rows, self._widths)
        return tables.lines(rows, self._widths)

    def _end(self, summary: dict[str, Any]) -> str:
        if self.format == "tsv":
            return ""
        if self.format == "text":
            return tables.footer(summary)
        return (
            "\n]"
            + "".join(f",\n{json.dumps(k)}: {json.dumps(v)}" for k, v in tables.finite(summary).items())
            + "}\n"
        )


def _state(file: Path) -> tuple[int, ...] | None:
    """What changes when somebody else writes `file`; None if there is no such file."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _written(file: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
