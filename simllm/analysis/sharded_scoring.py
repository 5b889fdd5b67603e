"""Scoring of many files of text pairs, with a table of scores for each file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError, OptionError
from simllm.io import output_file, ray_cluster, tables
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import read_json
from simllm.io.tables import format_count
from simllm.io.text_pairs import EqualPairs, from_rows
from simllm.metric import SimLLM
from simllm.scoring.scores import Scores, concatenate
from simllm.scoring.table import ScoreTable
from simllm.scoring.token_matching import Frequencies

SUMMARY = "summary.json"
_SHOWN = 3  # number of changed files that a warning names
_CPUS = 1  # processors for each actor; more actors are faster than more threads, as actors share nothing


@dataclass(frozen=True)
class ShardSettings:
    """Settings for reading, scoring and writing the text pairs of all input files.

    `simllm.metric.SimLLM` describes `pooling`, `similarity`, `mode`, `device`, `on_long`, `long` and
    `prior`.

    Attributes:
        model: The path of the model folder; None for the included model.
        frequencies: The path of a file with document frequencies, which the similarities "precision",
            "recall" and "f1" need.
        candidate_field: The key of the candidate in each JSON line.
        id_field: The key of the pair's id in each JSON line; None for pairs without ids.
        scale: One of `simllm.scoring.scores.SCALES`.
        format: The format of the tables: "tsv" or "json".
    """

    model: str | None = None
    pooling: str | None = None
    similarity: str | None = None
    mode: str = "exact"
    device: str | None = None
    on_long: str = "truncate"
    long: str | None = None
    frequencies: str | None = None
    prior: float = 0.5
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
    """Scorer of many shards, which loads the model only once."""

    def __init__(self, settings: ShardSettings) -> None:
        self.settings = settings
        self.metric = SimLLM(
            settings.model,
            pooling=settings.pooling,
            similarity=settings.similarity,
            mode=settings.mode,
            device=settings.device,
            on_long=settings.on_long,
            long=settings.long,
            frequencies=Frequencies.load(Path(settings.frequencies)) if settings.frequencies else None,
            prior=settings.prior,
        )
        if self.metric.by_token and self.metric.frequencies is None:
            raise OptionError("token-level similarities of several files need {frequencies} FILE")
        self.metric.no_scores.on(settings.scale)  # a wrong scale is refused now, not after an hour

    @property
    def signature(self) -> str:
        """The signature of the scores, which a resumed run compares with that of each finished table."""
        return self.metric.signature

    def score(self, shard: Shard) -> dict[str, Any]:
        """Score a shard, write its table, and return the table's summary with the SHA-256 of the input file.

        If scoring fails, no table is written.
        """
        settings, parts, equal = self.settings, list[Scores](), EqualPairs()
        sha256 = _sha256(shard.source)  # not after scoring: the file may change meanwhile
        columns = ScoreTable(
            settings.scale, settings.format, settings.id_field is not None, self.metric.no_scores
        )
        pairs = from_rows(shard.source, settings.candidate_field, settings.reference_field, settings.id_field)

        def rows() -> Iterator[tables.Rows]:
            for chunk, scores in self.metric.stream(pairs):
                parts.append(scores)
                equal.count(chunk)
                yield columns.rows(chunk, scores)

        def summary() -> dict[str, Any]:
            scores = concatenate(parts, self.metric.no_scores)
            messages = (*equal.warnings(), *self.metric.warnings_about(scores, settings.scale))
            return columns.summary(replace(scores, warnings=messages))

        tables.write_chunks(columns.columns, rows(), summary, settings.format, shard.table)
        return {"sha256": sha256, **summary()}


# A function that scores shards in any order. It yields each shard, with the summary of its complete table.
ScoreAll = Callable[[ShardSettings, Sequence[Shard]], Iterator[tuple[Shard, dict[str, Any]]]]


def score_here(settings: ShardSettings, shards: Sequence[Shard]) -> Iterator[tuple[Shard, dict[str, Any]]]:
    """Score shards one after the other in this process; yield each with the summary of its complete table."""
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
    """Score many files of pairs, write a table for each, and return the summary of all.

    The same call resumes a run that was stopped. The table of `NAME.jsonl` or `NAME.csv.gz` is `NAME.tsv`
    or `NAME.json`. `progress` gets the number of finished files and that of all files. Whatever InputError is
    raised, complete tables stay in the folder.
    """
    OutputFolder(folder).check_apart(sources)
    shards = _plan(sources, folder, settings.format)
    OutputFolder(folder, "score tables").own()
    # Two runs in the same folder would overwrite each other's summary.
    with locked(output_file.real(folder)):
        OutputFolder(folder).recover_inside()
        done = _done(folder, settings)
        _check_sources(shards, done, folder)
        _drop_outdated(shards, done)
        if done:
            # Before any shard is scored: a model that changed under the same path would mix two kinds of
            # scores.
            _check_signature(ShardScorer(settings).signature, done, folder)
        OutputFolder(folder).reserve([SUMMARY, *(shard.table.name for shard in shards)])
        missing = [s for s in shards if s.table.name not in done or not s.table.exists()]
        complete = len(shards) - len(missing)
        progress(complete, len(shards))
        for shard, summary in score_all(settings, missing):
            _check_signature(summary["signature"], done, folder)
            done[shard.table.name] = {"source": str(shard.source), **summary}
            # After each table, because a run that is stopped resumes from the summary.
            _write_summary(folder, settings, done)
            complete += 1
            progress(complete, len(shards))
        return _write_summary(folder, settings, {s.table.name: done[s.table.name] for s in shards})


def _plan(sources: Sequence[Path], folder: Path, format_: str) -> list[Shard]:
    """Choose the path of the output table for each input file; two tables must not have the same name."""
    shards: dict[str, Shard] = {}
    for source in sources:
        plain = Path(source.stem if source.suffix.lower() == ".gz" else source.name)
        stem = plain.stem if plain.suffix.lower() in (".jsonl", ".csv", ".tsv") else plain.name
        name = f"{stem}.{format_}"
        if name in shards:
            raise InputError(f"{source} and {shards[name].source}: both would be written to {folder / name}")
        if name == SUMMARY:
            raise InputError(f"{source}: its table would have the name of the summary, {SUMMARY}")
        shards[name] = Shard(source, folder / name)
    return list(shards.values())


def _done(folder: Path, settings: ShardSettings) -> dict[str, Any]:
    """Read the summaries of the complete tables of an earlier run by name; the settings must be the same."""
    file = folder / SUMMARY
    if not file.exists():
        return {}
    found = read_json(file)
    old, tables_ = found.get("settings"), found.get("tables")
    if not (isinstance(old, dict) and isinstance(tables_, dict) and all(map(_is_whole, tables_.values()))):
        raise InputError(f"{file}: is damaged; name another folder")
    if old != asdict(settings):
        changed = [name for name, value in asdict(settings).items() if old.get(name) != value]
        raise InputError(
            f"{folder}: holds scores with other settings ({', '.join(changed)}); name another folder"
        )
    return tables_


def _is_whole(row: Any) -> bool:
    """Return whether an entry of `summary.json` has the facts about a table that a resumed run uses."""
    kinds = {"source": str, "signature": str, "pairs": int, "mean": float}
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), kind) for name, kind in kinds.items())
        and isinstance(row.get("warnings", []), list)
        and row["pairs"] > 0
    )


def _check_sources(shards: Sequence[Shard], done: dict[str, Any], folder: Path) -> None:
    """Raise InputError if a table of an earlier run was made from an input file with another path."""
    for shard in shards:
        row = done.get(shard.table.name)
        # The tables of `a/x.jsonl` and `b/x.jsonl` are both named `x.tsv`.
        if row is not None and row["source"] != str(shard.source):
            raise InputError(f"{folder}: holds the scores of {row['source']}; name another folder")


def _drop_outdated(shards: Sequence[Shard], done: dict[str, Any]) -> None:
    """Remove tables from `done` whose input files have changed, so that these are scored again, and warn."""
    outdated = [
        shard for shard in shards
        if shard.table.name in done and done[shard.table.name].get("sha256") != _sha256(shard.source)
    ]  # fmt: skip
    for shard in outdated:
        # The old table stays in the folder until the new one replaces it.
        del done[shard.table.name]
    if outdated:
        names = ", ".join(str(shard.source) for shard in outdated[:_SHOWN])
        count = format_count(len(outdated), "file")
        more = ", …" if len(outdated) > _SHOWN else ""
        warnings.warn(f"{count} changed and will be scored again: {names}{more}", stacklevel=3)


def _sha256(file: Path) -> str:
    """Compute the SHA-256 of an input file, in hex digits."""
    try:
        return output_file.sha256_of(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None


def _check_signature(signature: str, done: dict[str, Any], folder: Path) -> None:
    """Raise InputError if new scores would have another signature than the complete tables."""
    for name, row in done.items():
        if row["signature"] != signature:
            raise InputError(f"{folder / name}: was scored by another model ({row['signature']})")


def _write_summary(folder: Path, settings: ShardSettings, done: dict[str, Any]) -> dict[str, Any]:
    summary = {"settings": asdict(settings), "tables": done}
    OutputFolder(folder).write(SUMMARY, json.dumps(summary, indent=1) + "\n")
    return summary


@dataclass(frozen=True)
class RayScoring:
    """Callable that scores shards on a Ray cluster, for `sharded_scoring.score_shards`.

    All machines of the cluster must find the files under the same paths.

    Attributes:
        address: The address of the cluster. "auto" means the cluster that this machine belongs to. None means
            that a new cluster is started on this machine.
        actors: The number of actors; None for one per processor of the cluster.
    """

    address: str | None = None
    actors: int | None = None

    def __call__(
        self, settings: ShardSettings, shards: Sequence[Shard]
    ) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """Score shards; yield each shard with the summary of its table as soon as the table is complete.

        If the cluster loses a machine, actors on other machines score that machine's shards.
        """
        if not shards:
            return
        ShardScorer(settings)  # an error in an actor's constructor would say less
        with ray_cluster.connected(self.address) as ray:
            yield from self._score(ray, _absolute(settings), shards)

    def _score(
        self, ray: Any, settings: ShardSettings, shards: Sequence[Shard]
    ) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """Score shards on a connected cluster; a free actor gets the next shard."""
        total = int(ray.cluster_resources().get("CPU", 1))
        actor = ray.remote(num_cpus=_CPUS)(ShardScorer)
        # Actors without a shard would load the model for nothing.
        count = min(len(shards), self.actors or max(1, total // _CPUS))
        free = [actor.remote(settings) for _ in range(count)]
        # Reversed, because shards are taken from the end.
        waiting = list(reversed(shards))
        running: dict[Any, tuple[Any, Shard]] = {}  # the actor and the shard of each task
        while waiting or running:
            while waiting and free:
                one, shard = free.pop(), waiting.pop()
                task = one.score.remote(Shard(shard.source.absolute(), shard.table.absolute()))
                running[task] = one, shard
            if not running:
                raise InputError(f"the Ray cluster lost all actors; {ray_cluster.RERUN}")
            ready, _ = ray.wait(list(running), num_returns=1)
            one, shard = running.pop(ready[0])
            try:
                yield shard, ray.get(ready[0])
            except ray.exceptions.RayActorError:  # its node is lost
                waiting.append(shard)
            else:
                free.append(one)


def _absolute(settings: ShardSettings) -> ShardSettings:
    """Make the paths in the settings absolute, because Ray actors have another working folder."""
    paths = {name: getattr(settings, name) for name in ("model", "frequencies")}
    absolute: dict[str, Any] = {name: str(Path(path).absolute()) for name, path in paths.items() if path}
    return replace(settings, **absolute)
