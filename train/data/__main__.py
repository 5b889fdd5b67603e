"""Fetch the public data sets for training and evaluation.

    python -m train.data fetch
    python -m train.data fetch emse_deepcom stsb_en --root data
    python -m train.data fetch --list

Each data set is read from a git repository, at a fixed commit. The repository belongs to the authors of the
data set, or has a copy of the data set. Only the needed files are fetched. Each converted file is verified.
Existing intact files are not changed, so rerun the same command to resume. `--list` shows the licence and
the terms of each data set. Exit status: 0 done, 2 bad input or no connection, 130 interrupted from the
keyboard.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from simllm.errors import InputError
from simllm.io import tables
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from train.data.catalog import CATALOG_FILE, READERS, Catalog, DataSet, Input, OutputFile
from train.data.filters import CLEANINGS, EvaluationTexts
from train.data.readers import Row
from train.data.repositories import GITHUB, RemoteRepository
from train.runtime import config
from train.runtime.command import make_parser, run_command
from train.runtime.config import data_root


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.data", __doc__)
    fetching = parser.add_subparsers(required=True, metavar="fetch").add_parser(
        "fetch", help="fetch data sets"
    )
    fetching.add_argument("names", nargs="*", metavar="NAME", help="data sets; default: all")
    fetching.add_argument(
        "--root", type=Path, default=Path(data_root()),
        help="folder of the data; default: the environment variable SIMLLM_DATA, or data",
    )  # fmt: skip
    fetching.add_argument(
        "--list", action="store_true", dest="show", help="show the data sets, and fetch nothing"
    )
    fetching.add_argument(
        "--host", default=GITHUB, help="URL or folder of the repositories OWNER/NAME; default: %(default)s"
    )
    fetching.add_argument(
        "--catalog", type=Path, default=CATALOG_FILE, help="table of the data sets; default: %(default)s"
    )
    return run_command(parser, _fetch)


def _fetch(names: list[str], root: Path, show: bool, host: str, catalog: Path) -> None:
    """Fetch the data sets that the command line names, or print them as a table."""
    loaded = config.load(Catalog, catalog, [])
    sets = loaded.choose(names)
    if show:
        _print_table(sets)
        return
    with TemporaryDirectory(prefix="simllm-data-") as cache:
        fetch(loaded, sets, root, host, Path(cache))


def _print_table(sets: list[DataSet]) -> None:
    """Print the data sets as a table, without cutting long entries."""
    rows = [["name", "texts", "licence", "terms", "what"]]
    rows += [[one.name, f"{one.rows:,}", one.licence, one.terms, one.about] for one in sets]
    sys.stdout.write(tables.lines(rows, [max(map(len, column)) for column in zip(*rows, strict=True)]))


def fetch(catalog: Catalog, sets: Iterable[DataSet], root: Path, host: str, cache: Path) -> None:
    """Fetch data sets into `root`, except for files that are intact.

    `cache` is an empty folder for temporary copies of the repositories.
    """
    converter = Converter(catalog, host, cache)
    for one in sets:
        missing = [file for file in one.files if not _is_intact(root / file.path, file)]
        if not missing:
            print(f"{one.name}: already there", file=sys.stderr)
            continue
        OutputFolder(root, "data sets").own()
        # Files are written one by one: an interrupted fetch keeps those that are complete.
        with locked(root):
            for file in missing:
                OutputFolder(root).check_addition(file.path)
                path = root / file.path
                again = f"warning: {path}: damaged or changed; fetching it again"
                print(again if path.exists() else f"{path}: fetching", file=sys.stderr)
                OutputFolder(root).write(file.path, _compress(file.path, converter.content(file)))
        print(f"{one.name}: {one.rows:,} texts; licence: {one.licence}; {one.terms}", file=sys.stderr)


def _is_intact(path: Path, file: OutputFile) -> bool:
    """Return whether a file has the expected content."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error):
        return False
    return hashlib.sha256(content).hexdigest() == file.sha256


def _compress(name: str, content: bytes) -> bytes:
    # Without the time, equal contents give equal files.
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content


class Converter:
    """Converter of files from repositories, which are opened in `folder` when they are first needed."""

    def __init__(self, catalog: Catalog, host: str, folder: Path) -> None:
        self._catalog = catalog
        self._host = host
        self._folder = folder
        self._open: dict[str, RemoteRepository] = {}

    def content(self, file: OutputFile) -> bytes:
        """Make the content of an output file, before compression; raise InputError for a wrong checksum."""
        try:
            rows = self.rows(file.inputs)
            if file.cleaning:
                rows = CLEANINGS[file.cleaning](rows, self.evaluation_texts)
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        except InputError as error:
            raise InputError(f"{file.path}: {error}") from None
        digest = hashlib.sha256(content).hexdigest()
        if digest != file.sha256:
            raise InputError(
                f"{file.path}: not written; its SHA-256 is {digest}, but {file.sha256} was expected"
            )
        return content

    def rows(self, inputs: Iterable[Input]) -> Iterator[Row]:
        """Yield the rows of all inputs, with their `language` and `source`."""
        for part in inputs:
            labels = {name: value for name in ("language", "source") if (value := getattr(part, name))}
            for row in READERS[part.reader](self._repository(part.repository).files(part.paths)):
                yield {**labels, **row}

    @cached_property
    def evaluation_texts(self) -> EvaluationTexts:
        """The evaluation texts of the catalog, which are fetched on first use."""
        names = ("text", "reference", "candidate", "candidate_clean")
        rows = self.rows(self._catalog.evaluation_texts)
        return EvaluationTexts(row[name] for row in rows for name in names if name in row)

    def _repository(self, repository: str) -> RemoteRepository:
        """Return a repository at the commit of the catalog."""
        if repository not in self._open:
            folder = self._folder / repository.replace("/", "+")
            self._open[repository] = RemoteRepository(
                repository, self._catalog.commits[repository], self._host, folder
            )
        return self._open[repository]


if __name__ == "__main__":
    sys.exit(main())
