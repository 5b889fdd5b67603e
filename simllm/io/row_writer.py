"""Writes rows as they come: a table to a person, TSV or JSON to a program.

A file is written beside its place, as `FILE.partial`, and put there when it is whole. An
interrupt leaves what was done: valid TSV or JSON, of whole rows.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from simllm.errors import InputError
from simllm.io import files, resume, tables
from simllm.io.resume import Kept, Measure

_STOPS = (signal.SIGINT, signal.SIGTERM)


class Rows:
    """An open table: `write` rows, set the `summary`, leave the context.

    `skip` rows were written before: TSV goes on after them, without a header. Raises
    InputError where the output cannot be written, does not hold these rows, or has rows that
    would be lost.
    """

    def __init__(self, columns: Sequence[str], format_: str | None, output: Path | None, skip: int) -> None:
        self.columns, self.output = columns, output.resolve() if output else None
        self.format = tables.format_for(format_, output)
        self.done = skip
        self.summary: dict[str, Any] = {}
        self.kept: Kept | None = None  # what is gone on with
        self._widths: list[int] = []
        if skip < 0 or (skip and self.format != "tsv"):
            raise InputError("--skip expects a number of pairs that are done, and -f tsv")
        self._partial: Path | None = None
        if self.output and not (self.output.exists() and not self.output.is_file()):
            self._partial = self.output.with_name(self.output.name + ".partial")

    def __enter__(self) -> Rows:
        self._first = self.done == 0
        self._target: TextIO | None = None
        self._writing = self._stopped = self._wrote = False
        header = tables.tsv([self.columns])
        if self._partial and self.done:
            self.kept = resume.kept(self._partial, self.columns, header, self.done)
        elif self._partial:
            resume.refuse(self._partial, header if self.format == "tsv" else None)
        self._before = {number: signal.signal(number, self._interrupt) for number in _STOPS}
        return self

    def begin(self, measure: Measure, skipped: Sequence[Sequence[str]]) -> None:
        """Before the first row, say what decides on the scores, and the ids and texts of the last
        `COMPARED` rows that are skipped. Raises InputError if other rows were written before.
        """
        if self.kept:
            self.kept.check(measure, skipped)
            self.kept.cut()
        elif self._partial:
            with _written(self.output):
                resume.note(self._partial).write_text(json.dumps(measure, indent=1) + "\n")

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows; an interrupt waits until all of them are written."""
        rows = list(rows)
        self._writing = True
        self._say(getattr(self, "_" + self.format)(rows, self._first))
        self._first = False
        self.done += len(rows)
        self._writing, self._wrote = False, True
        if self._stopped:
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> None:
        self._stopped = True
        if not self._writing:
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        kept = kind is not None and self.done > 0  # an error is no reason to lose what was scored
        if kind is None or (kept and not self._first):
            if self._first:
                self.write([])
            self._say(self._end({"interrupted": True} if kept else self.summary))
        if self._target and self._target is not sys.stdout:
            self._target.close()
        if self._partial and self.output and kind is None:
            with _written(self.output):
                files.sync(self._partial)
                self._partial.replace(self.output)
        elif self._partial and self._target and not kept:
            self._partial.unlink(missing_ok=True)
        if self._partial and not self._partial.exists():
            resume.note(self._partial).unlink(missing_ok=True)
        if stopped:
            raise KeyboardInterrupt(self._how_to_go_on()) from None
        if self._wrote and isinstance(error, InputError):
            raise InputError(f"{error}; stopped {self._how_to_go_on()}") from None

    def _how_to_go_on(self) -> str:
        where = f" in {self._partial}" if self._partial else ""
        done = f"after {self.done:,} pairs, which are{where or ' written'}"
        if self.format != "tsv" or not self.done:
            return f"{done}; only TSV (-f tsv) can be gone on with" if self.done else "before the first pairs"
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
                self._target = (self._partial or self.output).open(
                    "a" if self._partial and self.done else "w", encoding="utf-8"
                )
            self._target.write(text)
            self._target.flush()

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


@contextlib.contextmanager
def _written(file: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
