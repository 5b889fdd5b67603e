"""Scoring of many files of text pairs, with a table of scores for each file.

A table is written as soon as all pairs of its file are scored.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import output_file, real_path, tables
from simllm.io.number_format import format_count
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.io.read_text_pairs import EqualPairs, from_jsonl
from simllm.metric import SimLLM
from simllm.scoring.score_table import ScoreTable
from simllm.scoring.scores import Scores, concatenate
from simllm.scoring.token_idf_weights import Frequencies

SUMMARY = "summary.json"
_SHOWN = 3  # number of changed files that a warning names


@dataclass(frozen=True)
class ShardSettings:
    """Settings for reading, scoring and writing the text pairs of all input files.

    `simllm.metric.SimLLM` describes the values of `pooling`, `similarity`, `mode` and `on_long`.

    Attributes:
        model: The path of the model folder; None for the included model.
        pooling: The pooling of tokens into an embedding; None for the model's own.
        similarity: The similarity of embeddings or tokens; None for the model's own.
        mode: The precision of the encoder, such as "exact".
        on_long: The treatment of texts that are too long for the model, such as "truncate".
        frequencies: The path of a file with document frequencies (the number of texts with each token). The
            similarities "precision", "recall" and "f1" need this file; for others, it may be None.
        candidate_field: The key of the candidate in each JSON line.
        reference_field: The key of the reference in each JSON line.
        id_field: The key of the pair's id in each JSON line; None for pairs without ids.
        scale: The scale on which scores are shown: "raw" (the scores themselves), "percentile" (among random
            pairs), "rating" (expected human rating) or "same" (probability that both texts mean the same).
        format: The format of the tables: "tsv" or "json".
    """

    model: str | None = None
    pooling: str | None = None
    similarity: str | None = None
    mode: str = "exact"
    on_long: str = "truncate"
    frequencies: str | None = None
    candidate_field: str = "candidate"
    reference_field: str = "reference"
    id_field: str | None = None
    scale: str = "raw"
    format: str = "tsv"


class Shard(NamedTuple):
    """An input file of text pairs (`source`), and the path of its table of scores (`table`)."""

    source: Path
    table: Path


class ShardScorer:
    """Scorer of many files of text pairs, which loads the model only once.

    Args:
        settings: The settings for reading, scoring and writing the text pairs.

    Raises:
        InputError: A setting is wrong. Or the settings name no file with document frequencies (the number of
            texts with each token), although the similarity "precision", "recall" or "f1" needs it.
    """

    def __init__(self, settings: ShardSettings) -> None:
        self.settings = settings
        self.metric = SimLLM(
            settings.model,
            pooling=settings.pooling,
            similarity=settings.similarity,
            mode=settings.mode,
            on_long=settings.on_long,
            frequencies=Frequencies.load(Path(settings.frequencies)) if settings.frequencies else None,
        )
        if self.metric.by_token and self.metric.frequencies is None:
            raise InputError("token-level similarities of several files need --frequencies FILE")
        self.metric.no_scores.on(settings.scale)  # a wrong scale is refused now, not after an hour

    @property
    def signature(self) -> str:
        """Text that names everything that can change a score, such as the model and its settings.

        A resumed run compares this text with the text that was stored for each finished table of scores. If
        the texts differ, the run stops with an error, because the scores would not be comparable.
        """
        return self.metric.signature

    def score(self, shard: Shard) -> dict[str, Any]:
        """Score the pairs of an input file, and write the table of their scores.

        If scoring fails, no table is written.

        Args:
            shard: The input file, and the path of its table.

        Returns:
            The summary of the table: a dict with the number of pairs, the mean score and so on. The key
            "sha256" has the SHA-256 of the input file.

        Raises:
            InputError: The file has no pairs or a wrong line, or the table cannot be written.
        """
        settings, parts, equal = self.settings, list[Scores](), EqualPairs()
        sha256 = _sha256(shard.source)  # not after scoring: the file may change meanwhile
        columns = ScoreTable(
            settings.scale, settings.format, settings.id_field is not None, self.metric.no_scores
        )
        pairs = from_jsonl(
            shard.source, settings.candidate_field, settings.reference_field, settings.id_field
        )

        def rows() -> Iterator[tables.Rows]:
            for chunk, scores in self.metric.stream(pairs):
                parts.append(scores)
                equal.count(chunk)
                yield columns.rows(chunk, scores)

        def summary() -> dict[str, Any]:
            scores = concatenate(parts, self.metric.no_scores)
            messages = (*equal.warnings(), *self.metric.warnings_about(scores))
            return columns.summary(replace(scores, warnings=messages))

        tables.write_chunks(columns.columns, rows(), summary, settings.format, shard.table)
        return {"sha256": sha256, **summary()}


# A function that scores shards in any order. It yields each shard, with the summary of its complete table.
ScoreAll = Callable[[ShardSettings, Sequence[Shard]], Iterator[tuple[Shard, dict[str, Any]]]]


def score_here(settings: ShardSettings, shards: Sequence[Shard]) -> Iterator[tuple[Shard, dict[str, Any]]]:
    """Score files of text pairs one after the other in this process, and write a table for each file.

    Args:
        settings: The settings for reading, scoring and writing the text pairs.
        shards: The input files, and the paths of their tables.

    Yields:
        Each shard (input file and path of its table) as soon as its table is complete, with the table's
        summary (mean score and so on).
    """
    scorer = ShardScorer(settings)
    for shard in shards:
        yield shard, scorer.score(shard)


def score_shards(
    sources: Sequence[Path],
    folder: Path,
    settings: ShardSettings,
    score_all: ScoreAll = score_here,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Score many files of text pairs (JSON lines), and write a table for each file into a folder.

    The same call resumes a run that was stopped: files whose tables are complete are not scored again. If an
    input file has changed since, a warning names the file, and it is scored again.

    Args:
        sources: The input files. The table of `NAME.jsonl` or `NAME.jsonl.gz` is `NAME.tsv` or `NAME.json`,
            depending on `settings.format`.
        folder: The output folder: a new or empty folder, or that of the run to resume.
        settings: The settings for reading, scoring and writing the pairs.
        score_all: The function that scores the files: `score_here` (in this process), or an instance of
            `simllm.analysis.ray_scoring.RayScoring`.
        progress: A function that is called at the start and after each file, with the number of finished
            files and the number of all files.

    Returns:
        The content of `summary.json`, a dict with the keys `settings` and `tables`. The value of `tables` is
        a dict from the name of each table to its summary, its input file and the SHA-256 of this file.

    Raises:
        InputError: An input file is wrong or missing, or two tables would have the same name. Or the folder
            has files that simllm did not write, or it has tables of a run with other settings or input files.
            Or the Ray cluster is lost. In all cases, complete tables stay in the folder.
    """
    OutputFolder(folder).check_apart(sources)
    shards = _plan(sources, folder, settings.format)
    OutputFolder(folder, "score tables").own()
    with locked(real_path.real(folder)):
        OutputFolder(folder).recover_inside()
        done = _done(folder, settings)
        _check_sources(shards, done, folder)
        _drop_outdated(shards, done)
        if done:
            _check_signature(ShardScorer(settings).signature, done, folder)
        OutputFolder(folder).reserve([SUMMARY, *(shard.table.name for shard in shards)])
        missing = [s for s in shards if s.table.name not in done or not s.table.exists()]
        complete = len(shards) - len(missing)
        progress(complete, len(shards))
        for shard, summary in score_all(settings, missing):
            _check_signature(summary["signature"], done, folder)
            done[shard.table.name] = {"source": str(shard.source), **summary}
            _write_summary(folder, settings, done)
            complete += 1
            progress(complete, len(shards))
        return _write_summary(folder, settings, {s.table.name: done[s.table.name] for s in shards})


def _plan(sources: Sequence[Path], folder: Path, format_: str) -> list[Shard]:
    """Choose the path of the output table for each input file.

    Args:
        sources: The input files.
        folder: The folder for the tables.
        format_: The format of the tables, "tsv" or "json", which is also the suffix of their names.

    Returns:
        A `Shard` for each input file. It holds the path of the input file and the path of the table.

    Raises:
        InputError: Two tables would have the same name, or a table would be named `summary.json`.
    """
    shards: dict[str, Shard] = {}
    for source in sources:
        name = f"{source.name.removesuffix('.gz').removesuffix('.jsonl')}.{format_}"
        if name in shards:
            raise InputError(f"{source} and {shards[name].source}: both would be written to {folder / name}")
        if name == SUMMARY:
            raise InputError(f"{source}: its table would have the name of the summary, {SUMMARY}")
        shards[name] = Shard(source, folder / name)
    return list(shards.values())


def _done(folder: Path, settings: ShardSettings) -> dict[str, Any]:
    """Read the file `summary.json` of an earlier run, which lists the tables of scores that are complete.

    Returns:
        A dict from the name of each table to its figures, such as the mean score; empty if there was no
        earlier run.

    Raises:
        InputError: The earlier run had settings that differ from `settings`, or its file `summary.json` in
            `folder` is damaged.
    """
    file = folder / SUMMARY
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        old, tables_ = found["settings"], dict(found["tables"])
    except (ValueError, LookupError, TypeError):
        raise InputError(f"{file}: is damaged; name another folder") from None
    if old != asdict(settings):
        changed = [name for name, value in asdict(settings).items() if old.get(name) != value]
        raise InputError(
            f"{folder}: holds scores with other settings ({', '.join(changed)}); name another folder"
        )
    return tables_


def _check_sources(shards: Sequence[Shard], done: dict[str, Any], folder: Path) -> None:
    """Check that no table of an earlier run is taken for the table of another input file.

    For example, the tables of `a/x.jsonl` and `b/x.jsonl` are both named `x.tsv`. If the earlier run scored
    `a/x.jsonl`, and this run is to score `b/x.jsonl`, an error is raised.

    Args:
        shards: The input files, and the paths of their tables.
        done: A dict from the name of each complete table of the earlier run to its summary.
        folder: The output folder, for the error message.

    Raises:
        InputError: A table was made from an input file with another path.
    """
    for shard in shards:
        row = done.get(shard.table.name)
        if row is not None and row["source"] != str(shard.source):
            raise InputError(f"{folder}: holds the scores of {row['source']}; name another folder")


def _drop_outdated(shards: Sequence[Shard], done: dict[str, Any]) -> None:
    """Remove outdated tables of scores from the dict `done`, so that their input files are scored again.

    A table is outdated if its input file has changed since the earlier run. The table's file is not removed:
    it stays in the folder until the new table replaces it.

    Args:
        shards: The input files, and the paths of their tables.
        done: A dict from the name of each complete table of the earlier run to its summary. Outdated tables
            are removed from this dict. A warning names their input files (up to three of them).

    Raises:
        InputError: An input file cannot be read.
    """
    outdated = [
        shard for shard in shards
        if shard.table.name in done and done[shard.table.name].get("sha256") != _sha256(shard.source)
    ]  # fmt: skip
    for shard in outdated:
        del done[shard.table.name]
    if outdated:
        names = ", ".join(str(shard.source) for shard in outdated[:_SHOWN])
        count = format_count(len(outdated), "file")
        more = ", …" if len(outdated) > _SHOWN else ""
        warnings.warn(f"{count} changed and will be scored again: {names}{more}", stacklevel=3)


def _sha256(file: Path) -> str:
    """Compute the SHA-256 of an input file, in hex digits.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return output_file.sha256_of(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None


def _check_signature(signature: str, done: dict[str, Any], folder: Path) -> None:
    """Check that new scores come from the same model and settings as the tables of scores that are complete.

    Args:
        signature: The signature of the new scores: text that names everything that can change a score.
        done: A dict from the name of each complete table to its summary, which has the table's signature.
        folder: The output folder, for the error message.

    Raises:
        InputError: The signature differs from that of a complete table.
    """
    for name, row in done.items():
        if row["signature"] != signature:
            raise InputError(f"{folder / name}: was scored by another model ({row['signature']})")


def _write_summary(folder: Path, settings: ShardSettings, done: dict[str, Any]) -> dict[str, Any]:
    summary = {"settings": asdict(settings), "tables": done}
    OutputFolder(folder).write(SUMMARY, json.dumps(summary, indent=1) + "\n")
    return summary
