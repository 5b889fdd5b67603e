"""Scoring of many files of pairs: each input file gives one table, which is complete or absent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import files, folders, tables
from simllm.io.read_text_pairs import from_jsonl
from simllm.metric import SimLLM
from simllm.scoring.document_frequencies import Frequencies
from simllm.scoring.score_columns import ScoreTable
from simllm.scoring.scores import Scores, concatenate

SUMMARY = "summary.json"


@dataclass(frozen=True)
class ShardSettings:
    """How the pairs of all files are read, scored and written.

    Attributes:
        model: The model folder; None for the included model.
        pooling: As for `SimLLM`.
        similarity: As for `SimLLM`.
        mode: As for `SimLLM`.
        on_long: As for `SimLLM`.
        frequencies: A file of document frequencies.
        candidate_field: The key of the candidate in a line.
        reference_field: The key of the reference in a line.
        id_field: The key of the id in a line; None for pairs without ids.
        scale: The scale on which scores are shown.
        format: "tsv" or "json".
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
    """An input file, and the file for its table."""

    source: Path
    table: Path


class ShardScorer:
    """Scores files; the model is loaded once.

    Args:
        settings: How pairs are read, scored and written.

    Raises:
        InputError: A setting is wrong, or token-level similarities have no frequencies.
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
        """The signature of the scores."""
        return self.metric.signature

    def score(self, shard: Shard) -> dict[str, Any]:
        """Score a file, and write its table atomically.

        Returns:
            The summary of the table.

        Raises:
            InputError: The file has no pairs or a wrong line, or the table cannot be written.
        """
        settings, parts = self.settings, list[Scores]()
        columns = ScoreTable(
            settings.scale, settings.format, settings.id_field is not None, self.metric.no_scores
        )
        pairs = from_jsonl(
            shard.source, settings.candidate_field, settings.reference_field, settings.id_field
        )

        def rows() -> Iterator[tables.Rows]:
            for chunk, scores in self.metric.stream(pairs):
                parts.append(scores)
                yield columns.rows(chunk, scores)

        def summary() -> dict[str, Any]:
            return columns.summary(concatenate(parts, self.metric.no_scores))

        tables.write_chunks(columns.columns, rows(), summary, settings.format, shard.table)
        return summary()


# Scores shards in any order; yields each with its summary when its table is complete.
ScoreAll = Callable[[ShardSettings, Sequence[Shard]], Iterator[tuple[Shard, dict[str, Any]]]]


def score_here(settings: ShardSettings, shards: Sequence[Shard]) -> Iterator[tuple[Shard, dict[str, Any]]]:
    """Score shards one after the other in this process; see `ScoreAll`."""
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
    """Score many files of pairs (JSON lines), and write a table for each into a folder.

    The same call continues a run that was stopped: files whose tables are complete are not scored again.

    Args:
        sources: The input files. `NAME.jsonl` and `NAME.jsonl.gz` give the table `NAME.tsv`.
        folder: The output folder: missing, empty, or of the same run.
        settings: How pairs are read, scored and written.
        score_all: The engine: `score_here`, or `simllm.analysis.ray_scoring.RayScoring`.
        progress: A function that is called after each file with the number of done and of all files.

    Returns:
        The content of `summary.json`: the settings, and the summary of each table by its name.

    Raises:
        InputError: An input file is wrong or missing, two files have one name, the folder holds something
            else, or the engine is lost. Complete tables are kept.
    """
    folders.check_apart(folder, sources)
    shards = _plan(sources, folder, settings.format)
    folders.own(folder)
    with files.locked(files.real(folder)):
        folders.recover_all(folder)
        done = _done(folder, settings)
        folders.reserve(folder, [SUMMARY, *(shard.table.name for shard in shards)])
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
    """Name the table of each input file."""
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
    """Return the summaries of complete tables, by name.

    Raises:
        InputError: The folder holds a run with other settings.
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


def _check_signature(signature: str, done: dict[str, Any], folder: Path) -> None:
    """Check that a new table has the signature of the tables before it: a model may have changed."""
    for name, row in done.items():
        if row["signature"] != signature:
            raise InputError(f"{folder / name}: was scored by another model ({row['signature']})")


def _write_summary(folder: Path, settings: ShardSettings, done: dict[str, Any]) -> dict[str, Any]:
    summary = {"settings": asdict(settings), "tables": done}
    folders.add(folder, SUMMARY, json.dumps(summary, indent=1) + "\n")
    return summary
