"""The build of a corpus: make parts from the sources, merge the parts, write the corpus folder."""

from __future__ import annotations

import functools
import hashlib
import json
import pickle
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from tqdm import tqdm

import simllm
from simllm.io import output_file
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from train.corpus import config as corpus_config
from train.corpus import decontaminate, merge, sources
from train.corpus.config import COMMENTS, CORPUS, FACTS, PAGE, PAIRS, PARTS, REPORT, TEST, TRAIN, CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import Engine, Job, OneMachine
from train.corpus.parts import Part, Tallies, Tally
from train.corpus.source_trees import Code
from train.corpus.sources import Docstring, Item

__all__ = ["PAIRS", "TEST", "TRAIN", "build"]

BATCH = 4_000_000  # approximate characters of code or comments in a part
_NAME = re.compile(r"\d{6,}-[0-9a-f]{24}\.npz|\.\d{6,}-[0-9a-f]{24}\.npz\.\w+\.partial")

# The code and the libraries that can change the content of a part.
_CODE = (
    "train/corpus",
    "simllm/code",
    "simllm/io/reading.py",
    "simllm/io/tables.py",
    "simllm/text_cleaning.py",
)
_LIBRARIES = re.compile("rensa|tokenizers|tree[-_]sitter.*")


def build(
    config: CorpusConfig, folder: Path, engine: Engine | None = None, allow_download: bool = False
) -> dict[str, Any]:
    """Build a corpus of code comments, or resume a build that was killed.

    The folder gets these files:

    - `train.txt` and `test.txt`: texts, one per line.
    - `comments.jsonl`: the comments from which these texts come.
    - `pairs.jsonl`: pairs of texts that mean the same, without leaky texts.
    - `report.html` and `report.json`: counts and examples.
    - `corpus.json`: the configuration, the SHA-256 of the texts, and counts. This content is returned.

    The corpus does not depend on the engine (None: this machine). An up-to-date corpus in `folder` is left as
    it is. A finished corpus that is the only source is copied if it meets the configuration.
    """
    engine = engine or OneMachine()
    config_values = json.loads(json.dumps(asdict(config)))
    real = output_file.real(folder)
    # Beside the corpus, not in it: the corpus folder appears only when it is complete.
    scratch = real.parent / f".{real.name}.parts"
    excluded = decontaminate.read_excluded(config.exclude)
    built = corpus_config.read_facts(folder)
    if built and _is_current(built, config_values, excluded) and not scratch.exists():
        return built
    OutputFolder(folder, CORPUS).check_replaceable((TRAIN, TEST, COMMENTS, PAIRS, REPORT, PAGE, FACTS))
    for source in config.sources:
        OutputFolder(folder).check_apart(sources.source_paths(source))
    OutputFolder(folder).check_apart(map(Path, config.exclude))
    OutputFolder(scratch, PARTS).check()
    with locked(scratch):
        # Another process may have finished the corpus while this one waited for the lock.
        built = corpus_config.read_facts(folder)
        if not built or not _is_current(built, config_values, excluded):
            tallies, copied = Tallies(), _copyable_corpus(config, excluded)
            parts: list[Part] = []
            if not copied:
                parts = make_parts(config, scratch, engine, excluded, tallies.files, allow_download)
            built = _write(config, config_values, folder, parts, copied, excluded, tallies, engine)
        remove_parts(scratch)
    return built


def _write(
    config: CorpusConfig,
    config_values: dict[str, Any],
    folder: Path,
    parts: list[Part],
    copied: dict[str, Any] | None,
    excluded: ExcludedTexts,
    tallies: Tallies,
    engine: Engine,
) -> dict[str, Any]:
    """Write the corpus folder from parts, or from the finished corpus with the facts `copied`."""
    with OutputFolder(folder, CORPUS).replacing() as partial:
        if copied:
            for name in (TRAIN, TEST, COMMENTS, PAIRS, REPORT, PAGE):
                if (Path(config.sources[0]) / name).is_file():
                    shutil.copyfile(Path(config.sources[0]) / name, partial / name)
        built = copied or merge.write_corpus(config, parts, tallies, excluded, partial, engine)
        built["config"] = config_values
        output_file.write(partial / FACTS, json.dumps(built, indent=2) + "\n")
    for problem in tallies.problems():
        print(f"warning: {problem}", file=sys.stderr)
    return built


def _is_current(built: dict[str, Any], config_values: dict[str, Any], excluded: ExcludedTexts) -> bool:
    """Return whether a finished corpus has this configuration and was built without these excluded texts."""
    # The configuration has only the paths of the evaluation texts, whose content may have changed.
    is_same = not config_values["exclude"] or built["excluded_sha256"] == excluded.digest
    return bool(built["config"] == config_values and is_same)


def _copyable_corpus(config: CorpusConfig, excluded: ExcludedTexts) -> dict[str, Any] | None:
    """Return the facts of a finished corpus that is the only source and meets the configuration."""
    built = corpus_config.read_facts(Path(config.sources[0])) if len(config.sources) == 1 else None
    if not built or built["config"].get("test_share") != config.test_share:
        return None
    return built if not config.exclude or built["excluded_sha256"] == excluded.digest else None


def make_parts(
    config: CorpusConfig,
    folder: Path,
    engine: Engine,
    excluded: ExcludedTexts,
    tally: Tally,
    allow_download: bool = False,
) -> list[Part]:
    """Make the missing parts in `folder`, and return all parts in the order of the sources."""
    OutputFolder(folder, PARTS).own()
    for name in _part_names(folder):
        if name.endswith(".partial"):  # left by a build that was killed
            (folder / name).unlink()
    version = _version() + excluded.digest.encode()
    parts: list[Part] = []

    def missing() -> Iterator[Job]:
        """Yield a job for each missing or damaged part, and append all parts to `parts`."""
        for number, batch in enumerate(_batches(config, tally, allow_download)):
            data = pickle.dumps(batch)
            # The name has a hash of everything that decides the content, so that a part with this name need
            # not be made again.
            name = hashlib.blake2b(version + data, digest_size=12).hexdigest()
            parts.append(Part(folder / f"{number:06}-{name}.npz"))
            if not parts[-1].is_whole():
                if parts[-1].file.exists():
                    print(f"warning: {parts[-1].file}: is damaged; it is made again", file=sys.stderr)
                yield data, parts[-1].file

    engine.make_parts(missing(), excluded)
    return parts


def remove_parts(folder: Path) -> None:
    """Remove all parts from a folder, and the folder, too, if it has no other files."""
    for name in _part_names(folder):
        (folder / name).unlink(missing_ok=True)
    OutputFolder(folder).remove()


def _part_names(folder: Path) -> list[str]:
    """List the names of parts in a folder, including unfinished ones."""
    entries = folder.iterdir() if folder.is_dir() else []
    return [file.name for file in entries if _NAME.fullmatch(file.name)]


@functools.cache
def _version() -> bytes:
    """Hash all that can change the content of a part: code, libraries, Python version."""
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
    """Yield batches of about `BATCH` characters with the names of their sources; show a progress bar."""
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
    """Estimate the number of characters to process for an item."""
    if isinstance(item, Code):
        return len(item.data)
    return 100 + (len(item.text) if isinstance(item, Docstring) else len(item.summary + item.description))
