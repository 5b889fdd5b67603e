"""The engine that builds a corpus on a Ray cluster.

Ray tasks write and read the parts in a folder that all nodes see. Texts stay in the files: only hashes,
signatures and indices are sent between tasks. If a node is lost, Ray repeats its tasks, which give the same
results again, because these depend only on the files.

Ray Data is not used: it would copy the texts to its object store. It also does not preserve the order of the
texts, but the order decides which of several similar texts stays in the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.io import ray_cluster
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, NearDuplicates, band_keys, find_originals, resolve
from train.corpus.engine import Job
from train.corpus.extract import make_part
from train.corpus.parts import Part

_RETRIES = 10  # of a task whose node is lost
_GROUP = 1000  # largest number of parts that one task reads
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd number; its products have well mixed upper bits
_PLACE = np.dtype([("key", "u8"), ("text", "i8")])


class Group(NamedTuple):
    """Consecutive parts that one task reads.

    Attributes:
        start: The index of their first text, among all texts of the corpus.
        size: The number of their texts.
    """

    parts: list[Part]
    start: int
    size: int


@contextmanager
def cluster(address: str | None) -> Iterator[RayEngine]:
    """Connect to a Ray cluster: at an address, on this machine ("auto"), or a new one here (None)."""
    with ray_cluster.connected(address) as ray:
        yield RayEngine(ray)


@dataclass(frozen=True)
class RayEngine:
    """The engine for a Ray cluster; `ray` is the connected module."""

    ray: Any

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make each part in a task, with at most two tasks for each processor at a time."""
        shared = self.ray.put(excluded)
        make = self.remote(make_part)
        running: list[Any] = []
        for data, file in jobs:
            running.append(make(data, file.absolute(), shared))
            if len(running) >= 2 * self.processors():
                done, running = self.ray.wait(running)
                self.ray.get(done)
        self.ray.get(running)

    def signatures(
        self, parts: Sequence[Part], sizes: Sequence[int], folder: Path
    ) -> nullcontext[SignaturesOnCluster]:
        """Divide the parts among tasks, which read the signatures when needed; `folder` is not used."""
        count = max(1, min(len(parts), 2 * self.processors()), -(-len(parts) // _GROUP))
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        groups = []
        for numbers in np.array_split(np.arange(len(parts)), count):
            if len(numbers):
                first, last = int(numbers[0]), int(numbers[-1]) + 1
                some = [Part(part.file.absolute()) for part in parts[first:last]]
                groups.append(Group(some, int(starts[first]), int(starts[last] - starts[first])))
        # There is no temporary file to remove.
        return nullcontext(SignaturesOnCluster(self, groups))

    def processors(self) -> int:
        """Return the present number of processors, at least 1; it changes when nodes join or leave."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def remote(self, function: Callable[..., Any], results: int = 1) -> Callable[..., Any]:
        """Make a function that starts `function` as a task, and returns one or several references to its
        results.
        """
        options = {"max_retries": _RETRIES, "num_returns": results}
        return self.ray.remote(**options)(function).remote


@dataclass(frozen=True)
class SignaturesOnCluster:
    """The signatures of all T texts, which tasks read from groups of parts; see `engine.Signatures`."""

    engine: RayEngine
    groups: list[Group]

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find the original of each text."""
        original = np.arange(len(identities))
        equal = self._shuffle(_identities, [()] * len(self.groups))
        original[equal["text"]] = equal["first"]
        new = original == np.arange(len(original))
        some = self._shuffle(_bands, [(new[g.start : g.start + g.size],) for g in self.groups])
        compared = np.unique(some["text"])
        chosen = np.zeros(len(original), bool)
        chosen[compared] = True
        # The candidates for near duplicates are few enough to be compared in this process.
        original[compared] = compared[find_originals(identities[compared], self.select(chosen))]
        return resolve(original)

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the signatures of the chosen texts."""
        task = self.engine.remote(_select)
        some = [task(g.parts, chosen[g.start : g.start + g.size]) for g in self.groups]
        return np.concatenate([*self.engine.ray.get(some), np.empty((0, SIGNATURE), np.uint8)])

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Find the texts that repeat a text of another set."""
        shared, task = self.engine.ray.put(others), self.engine.remote(_near)
        found = self.engine.ray.get([task(group.parts, shared) for group in self.groups])
        return np.concatenate([*found, np.empty(0, bool)])

    def _shuffle(
        self, keys: Callable[..., list[NDArray[np.void]]], arguments: list[tuple[Any, ...]]
    ) -> NDArray[np.void]:
        """Find the texts that share a key with another text: for each, its index and that of the first
        (`first`).

        For each group, a task runs `keys` with the group, the number of buckets and the group's arguments,
        and splits the keys into buckets. For each bucket, a task finds equal keys.
        """
        buckets = max(2, len(self.groups))
        split, join = self.engine.remote(keys, buckets), self.engine.remote(_repeats)
        pieces = [split(g, buckets, *more) for g, more in zip(self.groups, arguments, strict=True)]
        found = self.engine.ray.get([join(*of_bucket) for of_bucket in zip(*pieces, strict=True)])
        return np.concatenate(found or [_no_repeats()])


def _identities(group: Group, buckets: int) -> list[NDArray[np.void]]:
    """Split the hashes of a group's texts into buckets: an array of type `_PLACE` for each."""
    hashes = np.concatenate([part["texts"]["identity"] for part in group.parts])
    return _split(hashes, group.start + np.arange(group.size), buckets)


def _bands(group: Group, buckets: int, new: NDArray[np.bool_]) -> list[NDArray[np.void]]:
    """Split the keys of `band_keys` into buckets, for the texts with true in `new` (N,)."""
    keys = band_keys(_select(group.parts, new))
    return _split(keys.ravel(), np.tile(group.start + np.flatnonzero(new), len(keys)), buckets)


def _split(keys: NDArray[np.uint64], texts: NDArray[np.int64], buckets: int) -> list[NDArray[np.void]]:
    """Split keys with the indices of their texts into buckets; equal keys get into the same bucket."""
    places = np.empty(len(keys), _PLACE)
    places["key"], places["text"] = keys, texts
    bucket = (keys * _SPREAD >> np.uint64(32)) % np.uint64(buckets)
    order = np.argsort(bucket, kind="stable")
    return np.split(places[order], np.searchsorted(bucket[order], np.arange(1, buckets)))


def _repeats(*pieces: NDArray[np.void]) -> NDArray[np.void]:
    """Find the texts that share a key, in arrays in which the indices of equal keys ascend."""
    places = np.concatenate(pieces)
    _, first, inverse, count = np.unique(
        places["key"], return_index=True, return_inverse=True, return_counts=True
    )
    shared = count[inverse] > 1
    found = np.empty(int(shared.sum()), _no_repeats().dtype)
    found["text"], found["first"] = places["text"][shared], places["text"][first[inverse[shared]]]
    return found


def _no_repeats() -> NDArray[np.void]:
    return np.empty(0, [("text", "i8"), ("first", "i8")])


def _select(parts: list[Part], chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the (M, SIGNATURE) signatures of the chosen texts of consecutive parts; `chosen` is (N,)."""
    kept, at = [], 0
    for part in parts:
        rows = part["signatures"]
        kept.append(rows[chosen[at : at + len(rows)]])
        at += len(rows)
    return np.concatenate(kept)


def _near(parts: list[Part], others: NearDuplicates) -> NDArray[np.bool_]:
    """Return (N,) bool: which texts of the parts repeat a text of another set."""
    return np.concatenate([others(part["signatures"]) for part in parts])
