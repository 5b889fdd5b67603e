"""Builds a corpus: sources -> parts -> deduplicated, split and paired -> the corpus folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.io import files, folders
from train.corpus import assemble, decontaminate, finished, part_workers, sources
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.finished import COMMENTS, FACTS, PAGE, PAIRS, REPORT, TEST, TRAIN
from train.corpus.tally import Tallies
from train.runtime.config import CorpusConfig

__all__ = ["PAIRS", "TEST", "TRAIN", "build"]


def build(config: CorpusConfig, folder: Path, workers: int = 0) -> dict[str, Any]:
    """Write a corpus to `folder`.

    `train.txt` and `test.txt` hold the cleaned texts, one per line: of every comment the summary
    and each paragraph that follows it. `comments.jsonl` has the comments that they are from,
    `pairs.jsonl` texts that mean the same and that are not near any text of `test.txt`,
    `report.html` and `report.json` what was found.

    A folder that was built from the same configuration is left as it is. A source that is a
    corpus is copied if it is the only source, and was split and decontaminated as asked. The
    finished parts of a build that was killed are in a hidden folder beside `folder`, and are not
    made again.

    Args:
        config: Where the comments come from.
        folder: The corpus folder: missing, empty, or written by simllm.
        workers: Processes; 0 for one on each core.

    Returns:
        What `corpus.json` holds: the configuration, the SHA-256 of the two files of texts
        together, and counts of what was read, dropped and kept.

    Raises:
        InputError: If too few texts are left, `folder` may not be replaced, is a source or lies
            inside or above one, or is being written by another process.
    """
    asked = json.loads(json.dumps(asdict(config)))
    real = files.real(folder)
    scratch = real.parent / f".{real.name}.parts"
    built = finished.facts(folder)
    if built and built["config"] == asked and not scratch.exists():
        return built
    folders.check_replaceable(folder, (TRAIN, TEST, COMMENTS, PAIRS, REPORT, PAGE, FACTS))
    for source in config.sources:
        folders.check_apart(folder, sources.check(source))
    folders.check(scratch)
    excluded = decontaminate.read_excluded(config.exclude)
    with files.locked(scratch):
        built = finished.facts(folder)
        if not built or built["config"] != asked:
            built = _built(config, asked, folder, scratch, excluded, workers or _cores())
        part_workers.remove(scratch)
    return built


def _built(
    config: CorpusConfig,
    asked: dict[str, Any],
    folder: Path,
    scratch: Path,
    excluded: ExcludedTexts,
    workers: int,
) -> dict[str, Any]:
    found, copied = Tallies(), _as_asked(config, excluded)
    made = [] if copied else part_workers.make(config, scratch, workers, excluded, found.files)
    with folders.replacing(folder) as partial:
        if copied:
            for name in (TRAIN, TEST, COMMENTS, PAIRS, REPORT, PAGE):
                if (Path(config.sources[0]) / name).is_file():
                    shutil.copyfile(Path(config.sources[0]) / name, partial / name)
        built = copied or assemble.write(config, made, found, excluded, partial)
        built["config"] = asked
        files.write(partial / FACTS, json.dumps(built, indent=2) + "\n")
    for problem in found.problems():
        print(f"warning: {problem}", file=sys.stderr)
    return built


def _as_asked(config: CorpusConfig, excluded: ExcludedTexts) -> dict[str, Any] | None:
    """The facts of a corpus that is the only source, if it was split and decontaminated as asked."""
    built = finished.facts(Path(config.sources[0])) if len(config.sources) == 1 else None
    if not built or built["config"].get("test_share") != config.test_share:
        return None
    return built if not config.exclude or built["excluded_sha256"] == excluded.digest else None


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
