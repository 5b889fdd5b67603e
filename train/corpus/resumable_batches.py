"""Batches of source files: a corpus is built batch by batch, so that a killed build can be resumed.

The sources are read in batches. The comments from one batch are stored in a file, which is called a part of
the corpus. The name of the file contains a hash of everything that decides its content. Therefore, a part
that already exists is not made again.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from tqdm import tqdm

import simllm
from simllm.io.output_folder import OutputFolder
from train.corpus import sources
from train.corpus.config import CorpusConfig
from train.corpus.corpus_folder import PARTS
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import Engine, Job
from train.corpus.part_file import Part
from train.corpus.skip_counts import Tally
from train.corpus.source_trees import Code
from train.corpus.sources import Docstring, Item

BATCH = 4_000_000  # approximate characters of code or comments in a part
_NAME = re.compile(r"\d{6,}-[0-9a-f]{24}\.npz|\.\d{6,}-[0-9a-f]{24}\.npz\.\w+\.partial")

# The code and the libraries that can change the content of a part.
_CODE = (
    "train/corpus",
    "simllm/code",
    "simllm/io/read_lines.py",
    "simllm/io/read_json_lines.py",
    "simllm/io/printable_path.py",
    "simllm/text_cleaning.py",
)
_LIBRARIES = re.compile("rensa|tokenizers|tree[-_]sitter.*")


def make_parts(
    config: CorpusConfig,
    folder: Path,
    engine: Engine,
    excluded: ExcludedTexts,
    tally: Tally,
    allow_download: bool = False,
) -> list[Part]:
    """Make the missing parts of a corpus. A part is a file with the comments from one batch of source files.

    Parts that already exist are not made again. Therefore, a killed build can be resumed.

    Args:
        config: The configuration of the corpus.
        folder: The folder of the parts.
        engine: The object that makes the missing parts, in several processes or on a cluster.
        excluded: Evaluation texts to leave out.
        tally: Counter of files that are left out; it is updated.
        allow_download: Whether data sets of the Hugging Face hub may be downloaded.

    Returns:
        All parts, old and new, in the order of the sources.

    Raises:
        InputError: A part cannot be written or read, or a worker process is killed.
    """
    OutputFolder(folder, PARTS).own()
    for name in _part_names(folder):
        if name.endswith(".partial"):
            (folder / name).unlink()
    version = _version() + excluded.digest.encode()
    parts: list[Part] = []

    def missing() -> Iterator[Job]:
        """Find the parts of the corpus that are missing or damaged, and yield a job for each.

        A part is a file with the comments from one batch of source files. All parts, also intact
        ones, are appended to the list `parts`.

        Yields:
            For each job, the pickled batch from which the part is made, and the file to write.
        """
        for number, batch in enumerate(_batches(config, tally, allow_download)):
            data = pickle.dumps(batch)
            name = hashlib.blake2b(version + data, digest_size=12).hexdigest()
            parts.append(Part(folder / f"{number:06}-{name}.npz"))
            if not parts[-1].is_whole():
                if parts[-1].file.exists():
                    print(f"warning: {parts[-1].file}: is damaged; it is made again", file=sys.stderr)
                yield data, parts[-1].file

    engine.make_parts(missing(), excluded)
    return parts


def remove_parts(folder: Path) -> None:
    """Remove all parts of a corpus from a folder; remove the folder, too, if it has no other files.

    A part is a file with the comments from one batch of source files.
    """
    for name in _part_names(folder):
        (folder / name).unlink(missing_ok=True)
    OutputFolder(folder).remove()


def _part_names(folder: Path) -> list[str]:
    """List the files in a folder that are parts of a corpus, including unfinished ones.

    A part is a file with the comments from one batch of source files.

    Returns:
        The names of the files; an empty list if the folder is missing.
    """
    entries = folder.iterdir() if folder.is_dir() else []
    return [file.name for file in entries if _NAME.fullmatch(file.name)]


@functools.cache
def _version() -> bytes:
    """Return a hash of this program's code and its library versions, as far as they affect a corpus.

    The hash covers the Python version, the source files in `_CODE`, and the versions of the libraries in
    `_LIBRARIES`. If the hash changes, all parts of the corpus are made again. A part is a file with the
    comments from one batch of source files.
    """
    digest = hashlib.blake2b(f"{sys.version_info[:2]}".encode())
    top = Path(simllm.__file__).parents[1]
    for name in _CODE:
        path = top / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    installed = {(str(package.name), package.version) for package in metadata.distributions()}
    digest.update(repr(sorted(pair for pair in installed if _LIBRARIES.fullmatch(pair[0]))).encode())
    return digest.digest()


def _batches(config: CorpusConfig, tally: Tally, allow_download: bool) -> Iterator[tuple[str, list[Item]]]:
    """Read all sources in batches of about `BATCH` (4 million) characters, and show a progress bar.

    Args:
        config: The configuration of the corpus.
        tally: Counter of files that are left out; it is updated.
        allow_download: Whether data sets of the Hugging Face hub may be downloaded.

    Yields:
        The name of the source, and a list of its source files, docstrings or comments.
    """
    with tqdm(unit="B", unit_scale=True, desc="reading", disable=None, leave=False) as bar:
        for source in config.sources:
            batch: list[Item] = []
            size = 0
            for item in sources.read(source, config.tags, tally, allow_download):
                batch.append(item)
                size += _size(item)
                if size >= BATCH:
                    bar.update(size)
                    yield source, batch
                    batch, size = [], 0
            if batch:
                yield source, batch


def _size(item: Item) -> int:
    """Estimate the number of characters to process for a source file, docstring or comment."""
    if isinstance(item, Code):
        return len(item.data)
    return 100 + (len(item.text) if isinstance(item, Docstring) else len(item.summary + item.description))
