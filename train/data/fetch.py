"""Fetching data sets: read their origins, convert, verify and write each file whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files, folders
from train.data.catalog import Catalog, DataSet, Input, OutputFile
from train.data.evaluation_texts import CLEANINGS, EvaluationTexts
from train.data.origin import Origin
from train.data.readers import READERS
from train.data.source_file import Row


def fetch(catalog: Catalog, sets: Iterable[DataSet], root: Path, host: str, cache: Path) -> None:
    """Write the files of the sets below `root`; those that are there and intact are left as they are.

    Args:
        catalog: The table that the sets are from.
        sets: The data sets to fetch.
        root: The folder of the data; simllm must own it, unless nothing has to be written.
        host: What stands before the repositories' names, as in `Origin`.
        cache: An empty folder for what is read from the origins.

    Raises:
        InputError: If the root holds files that simllm did not write, an origin cannot be
            fetched, or a converted file has another checksum than the table.
    """
    origins = Origins(catalog, host, cache)
    for chosen in sets:
        missing = [file for file in chosen.files if not _intact(root / file.path, file)]
        if not missing:
            print(f"{chosen.name}: already there", file=sys.stderr)
            continue
        folders.own(root)
        with files.locked(root):
            for file in missing:
                folders.check_addition(root, file.path)
                path = root / file.path
                again = f"warning: {path}: damaged or changed; fetching it again"
                print(again if path.exists() else f"{path}: fetching", file=sys.stderr)
                folders.add(root, file.path, _packed(file.path, origins.content(file)))
        print(
            f"{chosen.name}: {chosen.rows:,} texts; licence: {chosen.licence}; {chosen.terms}",
            file=sys.stderr,
        )


def _intact(path: Path, file: OutputFile) -> bool:
    """Whether a file is there and has its checksum."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error):
        return False
    return hashlib.sha256(content).hexdigest() == file.sha256


def _packed(name: str, content: bytes) -> bytes:
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content


class Origins:
    """The repositories of a table; each is fetched when it is first asked for."""

    def __init__(self, catalog: Catalog, host: str, folder: Path) -> None:
        self._catalog = catalog
        self._host = host
        self._folder = folder
        self._open: dict[str, Origin] = {}

    def content(self, file: OutputFile) -> bytes:
        """Return the converted content of a file; raise InputError if its checksum is another."""
        try:
            rows = self.rows(file.inputs)
            if file.cleaning:
                rows = CLEANINGS[file.cleaning](rows, self.evaluation_texts)
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        except InputError as error:
            raise InputError(f"{file.path}: {error}") from None
        found = hashlib.sha256(content).hexdigest()
        if found != file.sha256:
            raise InputError(
                f"{file.path}: not written; its SHA-256 is {found}, but {file.sha256} was expected"
            )
        return content

    def rows(self, inputs: Iterable[Input]) -> Iterator[Row]:
        """Yield the rows of the inputs, one after the other, with language and source if they are given."""
        for part in inputs:
            labels = {name: value for name in ("language", "source") if (value := getattr(part, name))}
            for row in READERS[part.reader](self._origin(part.repository).files(part.paths)):
                yield {**labels, **row}

    @cached_property
    def evaluation_texts(self) -> EvaluationTexts:
        """The texts that no corpus may hold."""
        names = ("text", "reference", "candidate", "candidate_clean")
        rows = self.rows(self._catalog.evaluation_texts)
        return EvaluationTexts(row[name] for row in rows for name in names if name in row)

    def _origin(self, repository: str) -> Origin:
        if repository not in self._open:
            folder = self._folder / repository.replace("/", "+")
            self._open[repository] = Origin(repository, self._catalog.commits[repository], self._host, folder)
        return self._open[repository]
