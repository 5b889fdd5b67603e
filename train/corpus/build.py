"""The build of a corpus: make parts from the sources, merge the parts, write the corpus folder.

A source is an input of the build, such as a folder with code. A part is a file with the comments from one
batch of the input.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.io import output_file, real_path
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from train.corpus import corpus_folder, decontaminate, merge_parts, resumable_batches, sources
from train.corpus.config import CorpusConfig
from train.corpus.corpus_folder import (
    COMMENTS,
    CORPUS,
    FACTS,
    PAGE,
    PAIRS,
    PARTS,
    REPORT,
    TEST,
    TRAIN,
)
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import Engine
from train.corpus.one_machine import OneMachine
from train.corpus.part_file import Part
from train.corpus.skip_counts import Tallies

__all__ = ["PAIRS", "TEST", "TRAIN", "build"]


def build(
    config: CorpusConfig, folder: Path, engine: Engine | None = None, allow_download: bool = False
) -> dict[str, Any]:
    """Build a corpus of code comments, or resume a build that was killed.

    The folder gets these files:

    - `train.txt` and `test.txt`: cleaned texts, one per line. A text is the summary or another paragraph of a
      comment.
    - `comments.jsonl`: the comments from which these texts come.
    - `pairs.jsonl`: pairs of texts that mean the same. Test texts and their near duplicates are left out.
    - `report.html` and `report.json`: counts and examples.
    - `corpus.json`: the configuration, the SHA-256 of the texts, and counts.

    Intermediate files stay in a hidden folder next to `folder` until the corpus is complete. In two cases,
    the corpus is not built from its sources:

    - `folder` already has a finished corpus with the same configuration and the same excluded texts (in the
      files of `config.exclude`). Then nothing is changed.
    - The only source is a finished corpus that already meets the configuration. Then its files are copied.

    Args:
        config: The configuration of the corpus.
        folder: The corpus folder: missing, empty, or written by simllm.
        engine: The object that runs the parallel steps of the build. None: they run on this machine. The
            corpus does not depend on the engine.
        allow_download: Whether data sets of the Hugging Face hub may be downloaded.

    Returns:
        The content of `corpus.json`.

    Raises:
        InputError: No training or no test text is left. Or `folder` has files that simllm did not write, is
            inside a source, contains a source, or is being written by another process.
    """
    engine = engine or OneMachine()
    config_values = json.loads(json.dumps(asdict(config)))
    real = real_path.real(folder)
    scratch = real.parent / f".{real.name}.parts"
    excluded = decontaminate.read_excluded(config.exclude)
    built = corpus_folder.read_facts(folder)
    if built and _is_current(built, config_values, excluded) and not scratch.exists():
        return built
    OutputFolder(folder, CORPUS).check_replaceable((TRAIN, TEST, COMMENTS, PAIRS, REPORT, PAGE, FACTS))
    for source in config.sources:
        OutputFolder(folder).check_apart(sources.source_paths(source))
    OutputFolder(folder).check_apart(map(Path, config.exclude))
    OutputFolder(scratch, PARTS).check()
    with locked(scratch):
        built = corpus_folder.read_facts(folder)
        if not built or not _is_current(built, config_values, excluded):
            tallies, copied = Tallies(), _copyable_corpus(config, excluded)
            parts: list[Part] = []
            if not copied:
                parts = resumable_batches.make_parts(
                    config, scratch, engine, excluded, tallies.files, allow_download
                )
            built = _write(config, config_values, folder, parts, copied, excluded, tallies, engine)
        resumable_batches.remove_parts(scratch)
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
    """Write the corpus folder: merge the parts, or copy the files of a finished corpus.

    A part is a file with the comments from one batch of the input. A finished corpus is copied if it is the
    only input in `config.sources` and can be reused (see `_copyable_corpus`).

    Args:
        config: The configuration of the corpus.
        config_values: The configuration as JSON values.
        folder: The corpus folder to write.
        parts: The parts to merge; empty if a finished corpus is copied.
        copied: The content of `corpus.json` of the finished corpus to copy; None to merge the parts.
        excluded: Evaluation texts that were left out of the parts.
        tallies: Counters of files, comments and texts that were read or left out; they are updated.
        engine: The object that runs the search for near duplicates among the texts of the parts.

    Returns:
        The content of `corpus.json`.
    """
    with OutputFolder(folder, CORPUS).replacing() as partial:
        if copied:
            for name in (TRAIN, TEST, COMMENTS, PAIRS, REPORT, PAGE):
                if (Path(config.sources[0]) / name).is_file():
                    shutil.copyfile(Path(config.sources[0]) / name, partial / name)
        built = copied or merge_parts.write_corpus(config, parts, tallies, excluded, partial, engine)
        built["config"] = config_values
        output_file.write(partial / FACTS, json.dumps(built, indent=2) + "\n")
    for problem in tallies.problems():
        print(f"warning: {problem}", file=sys.stderr)
    return built


def _is_current(built: dict[str, Any], config_values: dict[str, Any], excluded: ExcludedTexts) -> bool:
    """Return whether a finished corpus is up to date, so that it need not be built again.

    A corpus is up to date if it has the given configuration and excludes the given evaluation texts.

    Args:
        built: The content of `corpus.json` in the folder of the finished corpus.
        config_values: The configuration as JSON values. Its entry `exclude` has the paths of the files with
            evaluation texts. These files may have changed since the corpus was built.
        excluded: The evaluation texts that these files contain now.
    """
    is_same = not config_values["exclude"] or built["excluded_sha256"] == excluded.digest
    return bool(built["config"] == config_values and is_same)


def _copyable_corpus(config: CorpusConfig, excluded: ExcludedTexts) -> dict[str, Any] | None:
    """Find a finished corpus that can be copied, so that the new corpus need not be built.

    A source of a new corpus may be a finished corpus. If it is the only source, it can be copied under two
    conditions:

    - It has the share of test texts that `config` asks for.
    - It was built without the evaluation texts that `config` excludes. If `config` excludes no texts, this
      condition is always met.

    Args:
        config: The configuration of the corpus to build.
        excluded: The evaluation texts that `config` excludes.

    Returns:
        The content of `corpus.json` in the folder of the finished corpus. None if there are several sources,
        or if the only source is not a corpus or cannot be copied.
    """
    built = corpus_folder.read_facts(Path(config.sources[0])) if len(config.sources) == 1 else None
    if not built or built["config"].get("test_share") != config.test_share:
        return None
    return built if not config.exclude or built["excluded_sha256"] == excluded.digest else None
