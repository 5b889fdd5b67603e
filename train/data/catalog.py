"""The catalog of data sets, `sets.yaml`: their repositories, files, readers and checksums."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from train.data.evaluation_texts import CLEANINGS
from train.data.readers import READERS

CATALOG_FILE = Path(__file__).with_name("sets.yaml")


@dataclass(frozen=True, kw_only=True)
class Input:
    """Files of one repository, and the reader that turns them into rows."""

    repository: str  # owner/name on GitHub
    paths: tuple[str, ...]  # in the order in which they are read; `*` matches any name
    reader: str  # name of a function in readers.py
    language: str = ""  # added to each row
    source: str = ""  # added to each row

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise InputError(f"reader must be one of {', '.join(READERS)}, not {self.reader!r}")


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A converted file, made from the rows of its inputs."""

    path: str  # relative to the folder of the data
    rows: int  # number of rows
    sha256: str  # of the decompressed content
    inputs: tuple[Input, ...]
    cleaning: str = ""  # name of a function in evaluation_texts.py; "": all rows are kept

    def __post_init__(self) -> None:
        if self.cleaning and self.cleaning not in CLEANINGS:
            raise InputError(f"cleaning must be one of {', '.join(CLEANINGS)}, not {self.cleaning!r}")
        if Path(self.path).is_absolute() or ".." in Path(self.path).parts:
            raise InputError(f"path must stay below the root, unlike {self.path!r}")

    @property
    def repositories(self) -> set[str]:
        """The repositories of the inputs."""
        return {part.repository for part in self.inputs}


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: one or several files with the same licence and terms."""

    name: str
    about: str
    licence: str  # as stated in the repositories
    terms: str  # conditions for using or sharing the texts
    files: tuple[OutputFile, ...]

    @property
    def rows(self) -> int:
        """Number of texts or pairs in all files."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True)
class Catalog:
    """All data sets."""

    commits: dict[str, str]  # the commit of each repository
    evaluation_texts: tuple[Input, ...]  # texts that are left out of all corpora
    sets: tuple[DataSet, ...]

    def __post_init__(self) -> None:
        files = (file for one in self.sets for file in one.files)
        repositories = set().union(
            {part.repository for part in self.evaluation_texts}, *(f.repositories for f in files)
        )
        if without := sorted(repositories - self.commits.keys()):
            raise InputError(f"commits must name a commit of {', '.join(without)}")
        for name, commit in self.commits.items():
            if not re.fullmatch("[0-9a-f]{40}", str(commit)):
                raise InputError(f"commits: that of {name} must be 40 hexadecimal digits, not {commit}")

    def choose(self, names: Iterable[str]) -> list[DataSet]:
        """Return the sets with the given names, or all sets without names.

        Raises:
            InputError: A name is unknown.
        """
        by_name = {one.name: one for one in self.sets}
        for name in names:
            if name not in by_name:
                raise InputError(f"{name!r}: no such data set; there are {', '.join(by_name)}")
        return [by_name[name] for name in dict.fromkeys(names)] or list(self.sets)
