"""The catalog of data sets, `sets.yaml`: their repositories, files, readers and checksums."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from train.data import readers
from train.data.filters import CLEANINGS
from train.data.readers import Row, SourceFile

CATALOG_FILE = Path(__file__).with_name("sets.yaml")

Reader = Callable[[Iterable[SourceFile]], Iterator[Row]]

# The readers by name: the name of a reader is the name of its function.
READERS: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        readers.lines,
        readers.lines_with_id,
        readers.titles,
        readers.comment_files,
        readers.docstrings,
        readers.conala,
        readers.cosqa,
        readers.numbered_lists,
        readers.headlines,
        readers.split_sentences,
        readers.treebank_sentences,
        readers.descriptions_by_id,
        readers.descriptions_by_command,
        readers.rewritten_intents,
        readers.generated_summaries,
        readers.haque,
        readers.shen,
        readers.conala_grades,
        readers.commit_messages,
        readers.texts_of_workbook,
        readers.stsb,
        readers.sick,
        readers.semeval,
        readers.labelled_pairs,
        readers.paws,
        readers.breaking_nli,
        readers.parallel_files,
        readers.negations,
        readers.antonyms,
        readers.synonyms,
        readers.abbreviations,
    )
}


@dataclass(frozen=True, kw_only=True)
class Input:
    """Files of one repository, and their reader.

    Attributes:
        paths: The files in the order in which they are read; `*` matches any characters.
        reader: A key of `READERS`.
        language: Programming language, which is added to each row; "" adds nothing.
        source: The origin of the texts, such as "rencos", which is added to each row; "" adds nothing.
    """

    repository: str
    paths: tuple[str, ...]
    reader: str
    language: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise InputError(f"reader must be one of {', '.join(READERS)}, not {self.reader!r}")


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A file of converted data: JSON lines from one or several inputs.

    Attributes:
        path: Relative to the folder for all data.
        sha256: SHA-256 of the content, before compression if the file is gzipped.
        cleaning: A key of `CLEANINGS`; "" keeps all rows.
    """

    path: str
    rows: int
    sha256: str
    inputs: tuple[Input, ...]
    cleaning: str = ""

    def __post_init__(self) -> None:
        if self.cleaning and self.cleaning not in CLEANINGS:
            raise InputError(f"cleaning must be one of {', '.join(CLEANINGS)}, not {self.cleaning!r}")
        # A catalog may come from somebody else: it must not write outside of the folder for data.
        if Path(self.path).is_absolute() or ".." in Path(self.path).parts:
            raise InputError(f"path must stay below the root, unlike {self.path!r}")

    @property
    def repositories(self) -> set[str]:
        """The repositories of the inputs."""
        return {part.repository for part in self.inputs}


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: one or several files with the same licence and terms.

    Attributes:
        about: A short description.
        licence: The licence that the original repositories state, or a note that none was found.
        terms: Conditions for using or sharing the texts.
    """

    name: str
    about: str
    licence: str
    terms: str
    files: tuple[OutputFile, ...]

    @property
    def rows(self) -> int:
        """Number of texts or pairs in all files of the data set."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True)
class Catalog:
    """All data sets, and the commits of their repositories.

    Attributes:
        commits: From a repository to the hash of the commit to fetch.
        evaluation_texts: Files of texts that cleanings remove, so that models are not trained on them.
    """

    commits: dict[str, str]
    evaluation_texts: tuple[Input, ...]
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
        """Return the data sets with the given names; all if there are no names."""
        by_name = {one.name: one for one in self.sets}
        for name in names:
            if name not in by_name:
                raise InputError(f"{name!r}: no such data set; there are {', '.join(by_name)}")
        return [by_name[name] for name in dict.fromkeys(names)] or list(self.sets)
