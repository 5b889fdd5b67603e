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
    return replace(settings, **{name: str(Path(path).absolute()) for name, path in paths.items() if path})
