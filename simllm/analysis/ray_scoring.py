"""Scoring of many files on a Ray cluster. Each actor (worker process) loads the model once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simllm.analysis.sharded_scoring import Shard, ShardScorer, ShardSettings
from simllm.errors import InputError
from simllm.io import ray_cluster

_CPUS = 1  # processors for each actor; more actors are faster than more threads, as actors share nothing


@dataclass(frozen=True)
class RayScoring:
    """Callable that scores many files (shards) on a Ray cluster.

    An instance can be the argument `score_all` of `sharded_scoring.score_shards`. All machines of the cluster
    must find the files under the same paths.

    Attributes:
        address: The address of the cluster. "auto" means the cluster that this machine belongs to. None
            means that a new cluster is started on this machine.
        actors: The number of actors (worker processes); None for one per processor of the cluster.
    """

    address: str | None = None
    actors: int | None = None

    def __call__(
        self, settings: ShardSettings, shards: Sequence[Shard]
    ) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """Score shards (input files of text pairs), and write a table of scores for each shard.

        If the cluster loses a machine, actors (worker processes) on other machines score that machine's
        shards.

        Args:
            settings: The settings for reading, scoring and writing the text pairs.
            shards: The input files, and the paths of their tables.

        Yields:
            Each shard as soon as its table is complete, with the table's summary (mean score and so on).

        Raises:
            InputError: Ray is not installed, the cluster cannot be reached or is lost, or an input file is
                wrong.
        """
        if not shards:
            return
        ShardScorer(settings)  # an error in an actor's constructor would say less
        with ray_cluster.connected(self.address) as ray:
            yield from self._score(ray, _absolute(settings), shards)

    def _score(
        self, ray: Any, settings: ShardSettings, shards: Sequence[Shard]
    ) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """Score shards (input files) on the actors (worker processes) of a connected Ray cluster.

        The scores of a shard are written into a table, a file of its own. An actor scores one shard at a
        time. It gets the next shard when it is free.

        Args:
            ray: The module `ray`, connected to the cluster.
            settings: The settings for reading, scoring and writing the text pairs.
            shards: The input files, and the paths of their tables.

        Yields:
            Each finished shard, with figures of its table, such as the mean score.
        """
        total = int(ray.cluster_resources().get("CPU", 1))
        actor = ray.remote(num_cpus=_CPUS)(ShardScorer)
        count = min(len(shards), self.actors or max(1, total // _CPUS))
        free = [actor.remote(settings) for _ in range(count)]
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
    return replace(settings, **{name: str(Path(path).absolute()) for name, path in paths.items() if path})
