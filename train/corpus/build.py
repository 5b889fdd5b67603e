"""The build of a corpus: make parts from the sources, merge the parts, write the corpus folder."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.io import output_file
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from train.corpus import batches, decontaminate, merge, sources
from train.corpus import config as corpus_config
from train.corpus.config import COMMENTS, CORPUS, FACTS, PAGE, PAIRS, PARTS, REPORT, TEST, TRAIN, CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import Engine
from train.corpus.one_machine import OneMachine
from train.corpus.parts import Part, Tallies

__all__ = ["PAIRS", "TEST", "TRAIN", "build"]


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
                parts = batches.make_parts(config, scratch, engine, excluded, tallies.files, allow_download)
            built = _write(config, config_values, folder, parts, copied, excluded, tallies, engine)
        batches.remove_parts(scratch)
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
