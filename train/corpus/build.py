"""Builds a corpus: sources -> parts -> deduplicated, split and paired -> the corpus folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.io.folders import replacing
from train.corpus import assemble, decontaminate, part_workers
from train.corpus.assemble import PAIRS, TEST, TRAIN
from train.corpus.tally import Tallies
from train.runtime.config import CorpusConfig

__all__ = ["PAIRS", "TEST", "TRAIN", "build"]
FACTS = "corpus.json"


def build(config: CorpusConfig, folder: Path, workers: int = 0) -> dict[str, Any]:
    """Write a corpus to `folder`, with so many processes, or one for each core.

    `train.txt` and `test.txt` hold the cleaned texts, one a line: of every comment the summary
    and each paragraph that follows it. `comments.jsonl` has the comments that they are from,
    `pairs.jsonl` what means the same, `report.html` and `report.json` what was found.

    Returns what `corpus.json` holds: the configuration, the SHA-256 of both files of texts, and
    counts of what was read, dropped and kept. A folder that was built from the same configuration
    is left as it is; a source that is a corpus, and all that is asked for, is taken over. Raises
    InputError if too little is left. After a kill, the parts that were finished are not redone.
    """
    asked = json.loads(json.dumps(asdict(config)))
    built = _facts(folder)
    if built and built["config"] == asked:
        return built
    built = _as_asked(config)
    scratch, found, made = folder.with_name(folder.name + ".parts"), Tallies(), []
    if not built:
        made = part_workers.make(config, scratch, workers or len(os.sched_getaffinity(0)), found.files)
    with replacing(folder) as partial:
        if built:
            shutil.copytree(config.sources[0], partial, dirs_exist_ok=True)
        else:
            built = assemble.write(config, made, found, partial)
        built["config"] = asked
        (partial / FACTS).write_text(json.dumps(built, indent=2) + "\n")
    for problem in found.problems():
        print(f"warning: {problem}", file=sys.stderr)
    shutil.rmtree(scratch, ignore_errors=True)
    return built


def _facts(folder: Path) -> dict[str, Any] | None:
    """What `corpus.json` in a folder holds, if it is there."""
    file = folder / FACTS
    return json.loads(file.read_text()) if file.is_file() else None


def _as_asked(config: CorpusConfig) -> dict[str, Any] | None:
    """The facts of a corpus that is the only source, if it was split and decontaminated as asked."""
    built = _facts(Path(config.sources[0])) if len(config.sources) == 1 else None
    if not built or built["config"]["test_share"] != config.test_share:
        return None
    same = not config.exclude or built["excluded_sha256"] == decontaminate.read(config.exclude).digest
    return built if same else None
