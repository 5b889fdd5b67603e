"""The table of the data sets, `sets.yaml`: their repositories, files, converters and checksums."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from train.data.evaluation_texts import CLEANINGS
from train.data.readers import READERS

FILE = Path(__file__).with_name("sets.yaml")


@dataclass(frozen=True, kw_only=True)
class Input:
    """Files of one repository that one reader turns into rows."""

    repository: str  # owner/name on GitHub
    paths: tuple[str, ...]  # in the order in which they are read; `*` stands for any name
    reader: str  # name of a function in readers.py
    language: str = ""  # these two are added to each row
    source: str = ""

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise InputError(f"reader must be one of {', '.join(READERS)}, not {self.reader!r}")


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A file that is made from the inputs, one after the other."""

    path: str  # below the root
    rows: int
    sha256: str  # of the content, decompressed
    inputs: tuple[Input, ...]
    cleaning: str = ""  # a function in evaluation_texts.py; none: all rows are kept

    def __post_init__(self) -> None:
        if self.cleaning and self.cleaning not in CLEANINGS:
            raise InputError(f"cleaning must be one of {', '.join(CLEANINGS)}, not {self.cleaning!r}")
        if Path(self.path).is_absolute() or ".." in Path(self.path).parts:
            raise InputError(f"path must stay below the root, unlike {self.path!r}")

    @property
    def repositories(self) -> set[str]:
        """The repositories that the file is made from."""
        return {part.repository for part in self.inputs}


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: one file or several, under the same terms."""

    name: str
    about: str
    licence: str  # what the repositories say
    terms: str  # what a user must know before using or passing on the texts
    files: tuple[OutputFile, ...]

    @property
    def rows(self) -> int:
        """Texts or pairs in all files."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True)
class Catalog:
    """All data sets."""

    commits: dict[str, str]  # of each repository
    evaluation_texts: tuple[Input, ...]  # no text of these is in a corpus
    sets: tuple[DataSet, ...]

    def __post_init__(self) -> None:
        files = (file for found in self.sets for file in found.files)
        named = set().union(
            {part.repository for part in self.evaluation_texts}, *(f.repositories for f in files)
        )
        if without := sorted(named - self.commits.keys()):
            raise InputError(f"commits must name a commit of {', '.join(without)}")
        for name, commit in self.commits.items():
            if not re.fullmatch("[0-9a-f]{40}", str(commit)):
                raise InputError(f"commits: that of {name} must be 40 hexadecimal digits, not {commit}")

    def chosen(self, names: Iterable[str]) -> list[DataSet]:
        """Return the sets of these names, or all if there are no names.

        Raises InputError for an unknown name.
        """
        by_name = {found.name: found for found in self.sets}
        for name in names:
            if name not in by_name:
                raise InputError(f"{name!r}: no such data set; there are {', '.join(by_name)}")
        return [by_name[name] for name in dict.fromkeys(names)] or list(self.sets)
