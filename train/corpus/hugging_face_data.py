"""Readers for data sets named `hf:NAME[:CONFIG][:SPLIT][#COLUMN]`; they use Hugging Face `datasets`.

NAME is a local folder with parquet, arrow, csv or JSON files, or a data set of the Hugging Face hub (a
website). COLUMN has the texts. Rows are streamed, so that memory does not grow with the data set.
"""

from __future__ import annotations

import gc
import os
import re
import textwrap
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.code.source_files import LARGEST
from simllm.errors import InputError
from simllm.io.packages import missing_package
from simllm.io.tables import printable
from train.corpus.comments import Comment
from train.corpus.parts import Tally
from train.corpus.source_trees import Code

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

PREFIX = "hf:"
_SOURCE = re.compile(r"hf:(?P<name>[^:#]+)(:(?P<first>[^:#]*))?(:(?P<second>[^:#]+))?(#(?P<field>.+))?")
_BATCH = 1000  # rows of a parquet file that are read at once
_SAVED = ("dataset_dict.json", "dataset_info.json")  # files of `save_to_disk`
# The columns of code in The Stack (Kocetkov et al., 2022) and in similar data sets.
_CONTENT = "content"
_PATHS = ("path", "max_stars_repo_path", "file_path")
_SUFFIX = "ext"
_CODE = {*_PATHS, _SUFFIX}  # columns that tell code from other contents
_REPOSITORIES = ("repo_name", "max_stars_repo_name", "repository_name", "repo")
_LICENCES = ("license", "licence", "licenses", "max_stars_repo_licenses", "detected_licenses")

Row = dict[str, Any]


@dataclass(frozen=True)
class DataSetSource:
    """A data set that a user named as a source.

    Attributes:
        text: The source as the user wrote it.
        name: The folder, or the name on the hub.
        parts: CONFIG and SPLIT, one of them, or nothing.
        field: COLUMN; None: usual names of columns are looked for.
    """

    text: str
    name: str
    parts: tuple[str, ...]
    field: str | None

    @property
    def folder(self) -> Path | None:
        """The local folder of the data set; None if the data set is on the hub."""
        return Path(self.name) if Path(self.name).is_dir() else None


def parse_source(text: str) -> DataSetSource:
    """Parse the name of a data set, such as `hf:csn:java:train#docstring`."""
    match = _SOURCE.fullmatch(text)
    if not match:
        raise InputError(f"source {text!r}: expected hf:NAME[:CONFIG][:SPLIT][#COLUMN]")
    parts = tuple(part for part in (match["first"], match["second"]) if part is not None)
    return DataSetSource(text, match["name"], parts, match["field"])


def data_files(source: DataSetSource) -> list[Path]:
    """Return all files below the folder of a local data set, sorted."""
    if source.folder is None:
        raise InputError(f"source {source.text!r}: {source.name} is not a folder")
    return sorted(path for path in source.folder.rglob("*") if path.is_file())


def rows(source: DataSetSource, allow_download: bool = False) -> Generator[tuple[str, Row], None, None]:
    """Stream the rows of a data set, each with its location for error messages."""
    found = _open(source, allow_download)
    # pyarrow reads far ahead in a shard. Make each group of rows of a parquet file a shard of its own.
    stream = iter(found.reshard() if hasattr(found, "reshard") else found)
    number, problem = 0, ""
    try:
        while True:
            number += 1
            where = f"{source.text}, row {number}"
            try:
                row = next(stream)
            except StopIteration:
                return
            # The readers of each format raise errors of their own.
            except Exception as error:
                problem = f"{where}: cannot be read ({_one_line(error)})"
                break
            yield where, row
    finally:
        # An open reader of pyarrow would crash Python at its end (apache/arrow#45214).
        del stream, found
        gc.collect()
    raise InputError(problem)


def read_code_or_texts(
    source: DataSetSource, tally: Tally, allow_download: bool
) -> Iterator[Code | Comment | Row]:
    """Stream the rows of a data set: comments from the named column, source files, or plain rows.

    A row gives a source file if it has code in the column `content`, as in The Stack.
    """
    with closing(rows(source, allow_download)) as found:
        for where, row in found:
            if source.field is not None:
                text = _column(row, source.field, source)
                if isinstance(text, str):
                    yield Comment(text)
                else:
                    tally.add("row without a text", f"{where}: {source.field} is {type(text).__name__}")
            elif _CONTENT in row and row.keys() & _CODE:
                yield from _code(row, where, tally)
            else:
                yield row


def _code(row: Row, where: str, tally: Tally) -> Iterator[Code]:
    """Yield the source file in a row, unless it is too large or in no known language."""
    content = row[_CONTENT]
    if not isinstance(content, str | bytes):
        tally.add("row without a text", f"{where}: {_CONTENT} is {type(content).__name__}")
        return
    path = _first(row, _PATHS)
    language = LANGUAGE_OF_SUFFIX.get(PurePosixPath(path).suffix or f".{row.get(_SUFFIX)}")
    if language is None:
        return
    data = content if isinstance(content, bytes) else content.encode(errors="replace")
    if len(data) > LARGEST:
        tally.add("file too large", f"{where}: {len(data):,} bytes")
        return
    yield Code(data, language, printable(path), _first(row, _REPOSITORIES), _first(row, _LICENCES))


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first non-empty value among some columns as text; a list is joined by commas."""
    value = next((row[name] for name in names if row.get(name)), "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _column(row: Row, name: str, source: DataSetSource) -> Any:
    if name not in row:
        raise InputError(f"source {source.text!r}: no column {name!r}; expected one of {', '.join(row)}")
    return row[name]


def _open(source: DataSetSource, allow_download: bool) -> Dataset | IterableDataset:
    """Open a data set for streaming, and return the split that the user named."""
    if source.folder is None and not allow_download:
        raise InputError(
            f"source {source.text!r}: no such folder; --allow-download reads {source.name} from the hub"
        )
    if not allow_download:
        # Before the first import: libraries read it only then.
        os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import datasets
    except ModuleNotFoundError:
        raise InputError(f"source {source.text!r}: {missing_package('datasets', 'train')}") from None
    datasets.disable_progress_bars()
    # Errors are reported here, in one line.
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    folder = source.folder
    # "csv" alone would name a file format.
    name = str(folder.resolve()) if folder else source.name
    try:
        if folder and any((folder / file).is_file() for file in _SAVED):
            config, split = None, source.parts[-1] if source.parts else None
            found = datasets.load_from_disk(name)
        else:
            config, split = _config_and_split(source, name)
            builder = datasets.load_dataset_builder(name, config)
            # Only parquet has this setting; without a number, empty files would be an error.
            if getattr(builder.config, "batch_size", 0) is None:
                builder.config.batch_size = _BATCH
            found = builder.as_streaming_dataset()
    # Errors of the hub, of builders and of files have no common class.
    except Exception as error:
        raise InputError(f"source {source.text!r}: cannot be opened ({_one_line(error)})") from None
    return _split(found, split, source)


def _config_and_split(source: DataSetSource, name: str) -> tuple[str | None, str | None]:
    """Return CONFIG and SPLIT; a single name is CONFIG if the data set has such a configuration."""
    import datasets

    if len(source.parts) == 2:
        return source.parts[0] or None, source.parts[1]
    if not source.parts:
        return None, None
    is_config = source.parts[0] in datasets.get_dataset_config_names(name)
    return (source.parts[0], None) if is_config else (None, source.parts[0])


def _split(
    found: Dataset | IterableDataset | DatasetDict | IterableDatasetDict,
    wanted: str | None,
    source: DataSetSource,
) -> Dataset | IterableDataset:
    """Return one split of an opened data set; None stands for `train` or the only split."""
    if not isinstance(found, dict):
        if wanted is not None:
            raise InputError(f"source {source.text!r}: has no splits")
        return found
    name = wanted or ("train" if "train" in found else next(iter(found)) if len(found) == 1 else None)
    if name not in found:
        raise InputError(f"source {source.text!r}: expected one of the splits {', '.join(found)}")
    return found[name]


def _one_line(error: Exception) -> str:
    return textwrap.shorten(str(error), 300, placeholder=" …") or type(error).__name__
