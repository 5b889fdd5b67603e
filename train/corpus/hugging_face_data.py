"""Readers for data sets named `hf:NAME[:CONFIG][:SPLIT][#COLUMN]`; they use Hugging Face `datasets`.

NAME is a local folder with parquet, arrow, csv or JSON files, or a data set of the Hugging Face hub (a
website with data sets). FIELD is the column with the texts. For example, `hf:csn:java:train#docstring` names
the column `docstring` in the split `train` of the configuration `java` of the data set `csn`. Rows are
streamed, so that memory does not grow with the size of the data set.
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

from simllm.code.languages.language_registry import LANGUAGE_OF_SUFFIX
from simllm.errors import InputError
from simllm.io.printable_path import printable
from simllm.optional_packages import missing_package
from train.corpus.function_comment import Comment
from train.corpus.skip_counts import Tally
from train.corpus.source_file_filters import LARGEST
from train.corpus.source_trees import Code

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

PREFIX = "hf:"
_SOURCE = re.compile(r"hf:(?P<name>[^:#]+)(:(?P<first>[^:#]*))?(:(?P<second>[^:#]+))?(#(?P<field>.+))?")
_BATCH = 1000  # rows of a parquet file that are read at once
_SAVED = ("dataset_dict.json", "dataset_info.json")  # of `save_to_disk`
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
    """A data set that a user named as a source, in the form `hf:NAME[:CONFIG][:SPLIT][#COLUMN]`.

    Attributes:
        text: The source as the user wrote it.
        name: The folder, or the name on the Hugging Face hub (a website with data sets).
        parts: What the user wrote for CONFIG and SPLIT: two strings, one, or none. A single string can be
            CONFIG or SPLIT; `_config_and_split` decides this.
        field: The name of the column with the texts (FIELD). None if the user named no column. Then the
            column is found by usual names, such as `content` for source code.
    """

    text: str
    name: str
    parts: tuple[str, ...]
    field: str | None

    @property
    def folder(self) -> Path | None:
        """The local folder of the data set; None if the data set is on the Hugging Face hub (a website)."""
        return Path(self.name) if Path(self.name).is_dir() else None


def parse_source(text: str) -> DataSetSource:
    """Parse the name of a data set, such as `hf:csn:java:train#docstring`.

    Raises:
        InputError: The text does not have the form `hf:NAME[:CONFIG][:SPLIT][#COLUMN]`.
    """
    match = _SOURCE.fullmatch(text)
    if not match:
        raise InputError(f"source {text!r}: expected hf:NAME[:CONFIG][:SPLIT][#COLUMN]")
    parts = tuple(part for part in (match["first"], match["second"]) if part is not None)
    return DataSetSource(text, match["name"], parts, match["field"])


def data_files(source: DataSetSource) -> list[Path]:
    """Return all files in the folder of a data set and in its subfolders, sorted by path.

    Raises:
        InputError: There is no such local folder. For example, the data set is on the Hugging Face hub.
    """
    if source.folder is None:
        raise InputError(f"source {source.text!r}: {source.name} is not a folder")
    return sorted(path for path in source.folder.rglob("*") if path.is_file())


def rows(source: DataSetSource, allow_download: bool = False) -> Generator[tuple[str, Row], None, None]:
    """Stream the rows of a data set.

    Args:
        source: The data set.
        allow_download: Whether a data set of the Hugging Face hub may be downloaded.

    Yields:
        The location of the row for error messages, and the row.

    Raises:
        InputError: The data set cannot be opened or read, or does not have the configuration or the split
            that the source names.
    """
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
            except Exception as error:  # the readers of each format raise errors of their own
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
    """Stream source files, comments or rows from a data set.

    What is yielded for a row depends on its columns:

    - If the source names a column (`source.field`), the text in this column is yielded as a comment.
    - Otherwise, if the row has code in the column `content`, as in the data set The Stack, a source file is
      yielded.
    - Any other row is yielded unchanged, as a dict.

    Args:
        source: The data set.
        tally: Counter of rows that are left out, such as rows without a text; it is updated.
        allow_download: Whether a data set of the Hugging Face hub may be downloaded.

    Raises:
        InputError: The data set cannot be read, or lacks the column that the source names.
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
    """Yield the source file in a row of a data set.

    Nothing is yielded if the file is too large, or if its suffix names no known programming language.

    Args:
        row: The row, with the code in the column `content`.
        where: The location of the row for error messages.
        tally: Counter of rows that are left out; it is updated.
    """
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
    """Return the first non-empty value among some columns of a row, as text.

    Args:
        row: The row.
        names: The names of the columns, in the order of preference. Columns may be missing.

    Returns:
        The value. The items of a list are joined by commas. "" if all columns are empty or missing.
    """
    value = next((row[name] for name in names if row.get(name)), "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _column(row: Row, name: str, source: DataSetSource) -> Any:
    if name not in row:
        raise InputError(f"source {source.text!r}: no column {name!r}; expected one of {', '.join(row)}")
    return row[name]


def _open(source: DataSetSource, allow_download: bool) -> Dataset | IterableDataset:
    """Open a data set for streaming, and return one of its splits.

    Args:
        source: The data set, with the split that the user named. If the user named no split, the split
            `train` is returned or, if there is no `train`, the only split.
        allow_download: Whether a data set of the Hugging Face hub may be downloaded.

    Raises:
        InputError: The data set cannot be opened, needs a download that is not allowed, or lacks the split.
    """
    if source.folder is None and not allow_download:
        raise InputError(
            f"source {source.text!r}: no such folder; --allow-download reads {source.name} from the hub"
        )
    if not allow_download:
        os.environ["HF_HUB_OFFLINE"] = "1"  # before the first import: libraries read it only then
    try:
        import datasets
    except ModuleNotFoundError:
        raise InputError(f"source {source.text!r}: {missing_package('datasets', 'train')}") from None
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # errors are reported here, in one line
    folder = source.folder
    name = str(folder.resolve()) if folder else source.name  # "csv" alone would name a file format
    try:
        if folder and any((folder / file).is_file() for file in _SAVED):
            config, split = None, source.parts[-1] if source.parts else None
            found = datasets.load_from_disk(name)
        else:
            config, split = _config_and_split(source, name)
            builder = datasets.load_dataset_builder(name, config)
            if getattr(builder.config, "batch_size", 0) is None:  # parquet; or empty files would be an error
                builder.config.batch_size = _BATCH
            found = builder.as_streaming_dataset()
    except Exception as error:  # errors of the hub, of builders and of files have no common class
        raise InputError(f"source {source.text!r}: cannot be opened ({_one_line(error)})") from None
    return _split(found, split, source)


def _config_and_split(source: DataSetSource, name: str) -> tuple[str | None, str | None]:
    """Return the names of the configuration and of the split that the user chose in a data set.

    The user may give only one of them, such as `java` in `hf:csn:java`. Then `java` is the configuration if
    the data set has a configuration with this name; otherwise, it is the split.

    Args:
        source: The source as the user wrote it.
        name: The path of the data set's folder, or the data set's name on the Hugging Face hub.

    Returns:
        The name of the configuration, and the name of the split. A name that the user did not give is None.
    """
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
    """Return one split of an opened data set.

    Args:
        found: The data set: a dict of splits, or a data set that is not divided into splits.
        wanted: The name of the split; None for `train` or, if there is no `train`, for the only split.
        source: The source that names the data set, for error messages.

    Raises:
        InputError: There is no such split, or `wanted` is None and it is unclear which split to use.
    """
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
