"""The engine that builds a corpus on a Ray cluster.

A part is a file with the comments from one batch of source files. Ray tasks write and read these files in a
folder that all nodes see. Texts stay in the files: only hashes, signatures and indices are sent between
tasks. If a node is lost, Ray repeats its tasks. They give the same results again, because their results
depend only on the files.

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
from train.corpus import batch_comments
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, NearDuplicates, band_keys, find_originals, resolve
from train.corpus.engine import Job
from train.corpus.part_file import Part

_RETRIES = 10  # of a task whose node is lost
_GROUP = 1000  # largest number of parts that one task reads
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # an odd number; its products have well mixed upper bits
_PLACE = np.dtype([("key", "u8"), ("text", "i8")])


class Group(NamedTuple):
    """Consecutive parts of a corpus that one Ray task reads.

    A part is a file with the comments from one batch of source files. A comment has one or several texts: its
    summary (first sentence) and its other paragraphs.

    Attributes:
        parts: The parts.
        start: The index of the first text in these parts, among all texts of the corpus.
        size: The number of texts in these parts.
    """

    parts: list[Part]
    start: int
    size: int


@contextmanager
def cluster(address: str | None) -> Iterator[RayEngine]:
    """Connect to a Ray cluster for a `with` block, and give the engine that builds a corpus there.

    Args:
        address: The address of the cluster, or "auto" for the cluster that runs on this machine. None starts
            a new cluster on this machine.
    """
    with ray_cluster.connected(address) as ray:
        yield RayEngine(ray)


@dataclass(frozen=True)
class RayEngine:
    """The engine that builds a corpus on a Ray cluster; see `engine.Engine`.

    Ray tasks make the parts of the corpus, and compare the MinHash signatures of their texts. A part is a
    file with the comments from one batch of source files.

    Attributes:
        ray: The module `ray`, connected to a cluster.
    """

    ray: Any

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make parts of a corpus. A part is a file with the comments from one batch of source files.

        Each part is made by a Ray task. At most two tasks for each processor are submitted at a time.

        Args:
            jobs: For each part, the pickled batch and the file to write.
            excluded: Evaluation texts to leave out.
        """
        shared = self.ray.put(excluded)
        make = self.remote(batch_comments.make_part)
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
        """Return a context manager that gives access to the MinHash signatures of all texts of a corpus.

        This method reads no signature. Ray tasks read the signatures from the parts when they are needed.

        Args:
            parts: The parts of the corpus. A part is a file with the comments from one batch of source files.
            sizes: The number of texts in each part.
            folder: Not used, because no temporary file is written.
        """
        count = max(1, min(len(parts), 2 * self.processors()), -(-len(parts) // _GROUP))
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        groups = []
        for numbers in np.array_split(np.arange(len(parts)), count):
            if len(numbers):
                first, last = int(numbers[0]), int(numbers[-1]) + 1
                some = [Part(part.file.absolute()) for part in parts[first:last]]
                groups.append(Group(some, int(starts[first]), int(starts[last] - starts[first])))
        return nullcontext(SignaturesOnCluster(self, groups))

    def processors(self) -> int:
        """Return the current number of processors of the cluster, at least 1.

        The number changes when nodes join or leave the cluster.
        """
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def remote(self, function: Callable[..., Any], results: int = 1) -> Callable[..., Any]:
        """Make a function that runs `function` as a task on the Ray cluster.

        If the node of a task is lost, Ray starts the task again.

        Args:
            function: The function to run in a task.
            results: The number of values that `function` returns.

        Returns:
            A function with the same arguments as `function`. It starts a task, and returns at once. Its
            result is a Ray reference to the value of `function`, or a list of references if there are
            several values.
        """
        options = {"max_retries": _RETRIES, "num_returns": results}
        return self.ray.remote(**options)(function).remote


@dataclass(frozen=True)
class SignaturesOnCluster:
    """The MinHash signatures of all T texts of a corpus, which Ray tasks read from the parts of the corpus.

    A part is a file with the comments from one batch of source files. The class implements the interface
    `engine.Signatures`.

    Attributes:
        engine: The engine that starts tasks.
        groups: The parts of the corpus, in groups. Each group is read by one task.
    """

    engine: RayEngine
    groups: list[Group]

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find for each text the earlier text that it repeats exactly or nearly.

        The search has three steps:

        1. Tasks on the Ray cluster find equal texts by their hashes.
        2. Tasks on the Ray cluster find texts whose MinHash signatures are equal in a band (a group of
           bytes). Only such texts can be near duplicates.
        3. The process that calls this method compares the texts from step 2 itself.

        Args:
            identities: (T,) for each of the T texts of the corpus, one hash of all its words. Equal texts
                have equal hashes.

        Returns:
            (T,) for each text, the index of the text that it repeats; its own index if it repeats none.
        """
        original = np.arange(len(identities))
        equal = self._shuffle(_identities, [()] * len(self.groups))
        original[equal["text"]] = equal["first"]
        new = original == np.arange(len(original))
        some = self._shuffle(_bands, [(new[g.start : g.start + g.size],) for g in self.groups])
        compared = np.unique(some["text"])
        chosen = np.zeros(len(original), bool)
        chosen[compared] = True
        original[compared] = compared[find_originals(identities[compared], self.select(chosen))]
        return resolve(original)

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the MinHash signatures of the chosen texts.

        Args:
            chosen: (T,) for each of the T texts of the corpus, true if it is chosen.

        Returns:
            (M, SIGNATURE) bytes: one row for each of the M chosen texts.
        """
        task = self.engine.remote(_select)
        some = [task(g.parts, chosen[g.start : g.start + g.size]) for g in self.groups]
        return np.concatenate([*self.engine.ray.get(some), np.empty((0, SIGNATURE), np.uint8)])

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Find the texts of the corpus that equal or nearly repeat a text of another set.

        For example, the other set has the texts that are held out for testing.

        Args:
            others: An object that finds near duplicates of the texts in the other set.

        Returns:
            (T,) bool: for each of the T texts of the corpus, true if it equals or nearly repeats a text of
            the other set.
        """
        shared, task = self.engine.ray.put(others), self.engine.remote(_near)
        found = self.engine.ray.get([task(group.parts, shared) for group in self.groups])
        return np.concatenate([*found, np.empty(0, bool)])

    def _shuffle(
        self, keys: Callable[..., list[NDArray[np.void]]], arguments: list[tuple[Any, ...]]
    ) -> NDArray[np.void]:
        """Find the texts that share a key with another text, by tasks on the cluster.

        A key is an integer, such as a hash of the text. A text may have several keys. The texts of the corpus
        are stored in files, which are divided into groups. The search has two steps:

        1. For each group, one task computes the keys of the group's texts, and splits them into buckets.
           Equal keys get into the same bucket, also if they come from different groups.
        2. For each bucket, one task collects the keys from all groups, and finds equal keys.

        Args:
            keys: The function that the tasks of step 1 run, such as `_bands`. Its arguments are a group, the
                number of buckets, and the group's additional arguments. It returns a list with a structured
                array for each bucket: keys (`key`) with the indices of their texts (`text`).
            arguments: For each group, a tuple of additional arguments for `keys`.

        Returns:
            Structured array. For each key that several texts share, it has one entry for each of these texts:
            the index of the text (`text`), and the index of the first text with this key (`first`).
        """
        buckets = max(2, len(self.groups))
        split, join = self.engine.remote(keys, buckets), self.engine.remote(_repeats)
        pieces = [split(g, buckets, *more) for g, more in zip(self.groups, arguments, strict=True)]
        found = self.engine.ray.get([join(*of_bucket) for of_bucket in zip(*pieces, strict=True)])
        return np.concatenate(found or [_no_repeats()])


def _identities(group: Group, buckets: int) -> list[NDArray[np.void]]:
    """Read the hashes of texts of the corpus, and split the hashes into buckets.

    The hash of a text is computed from all its words. Equal texts have equal hashes, and equal hashes get
    into the same bucket. Therefore, each bucket can be searched for equal texts separately.

    Args:
        group: Consecutive files of the corpus, which hold the texts and their hashes.
        buckets: The number of buckets.

    Returns:
        For each bucket, a structured array of hashes (`key`) and the indices of their texts in the whole
        corpus (`text`).
    """
    hashes = np.concatenate([part["texts"]["identity"] for part in group.parts])
    return _split(hashes, group.start + np.arange(group.size), buckets)


def _bands(group: Group, buckets: int, new: NDArray[np.bool_]) -> list[NDArray[np.void]]:
    """Compute integer keys to find near duplicates of texts, and split the keys into buckets.

    A text has several keys. Each key stands for a few neighbouring bytes (a band) of the text's MinHash
    signature. Texts that share a key may be near duplicates, and are compared later (see `band_keys`). Equal
    keys get into the same bucket. Therefore, each bucket can be searched for equal keys separately.

    Args:
        group: Consecutive files of the corpus, which hold N texts and their MinHash signatures.
        buckets: The number of buckets.
        new: (N,) for each text, true if it equals no earlier text. Texts with false get no keys.

    Returns:
        For each bucket, a structured array of keys (`key`) and the indices of their texts in the whole
        corpus (`text`).
    """
    keys = band_keys(_select(group.parts, new))
    return _split(keys.ravel(), np.tile(group.start + np.flatnonzero(new), len(keys)), buckets)


def _split(keys: NDArray[np.uint64], texts: NDArray[np.int64], buckets: int) -> list[NDArray[np.void]]:
    """Split integer keys into buckets, together with the indices of their texts.

    Equal keys get into the same bucket. Therefore, each bucket can be searched for equal keys separately.

    Args:
        keys: The keys, such as hashes of texts.
        texts: For each key, the index of its text.
        buckets: The number of buckets.

    Returns:
        For each bucket, a structured array of keys (`key`) and the indices of their texts (`text`).
    """
    places = np.empty(len(keys), _PLACE)
    places["key"], places["text"] = keys, texts
    bucket = (keys * _SPREAD >> np.uint64(32)) % np.uint64(buckets)
    order = np.argsort(bucket, kind="stable")
    return np.split(places[order], np.searchsorted(bucket[order], np.arange(1, buckets)))


def _repeats(*pieces: NDArray[np.void]) -> NDArray[np.void]:
    """Find the texts that share a key with another text.

    A key is an integer, such as a hash of the text. A text may have several keys.

    Args:
        pieces: Structured arrays of keys (`key`) and the indices of their texts (`text`). The arrays are
            joined in the given order. In the joined array, the indices of equal keys must be in ascending
            order.

    Returns:
        Structured array. For each key that several texts share, it has one entry for each of these texts: the
        index of the text (`text`), and the index of the first text with this key (`first`).
    """
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
    """Return the MinHash signatures of the chosen texts in consecutive parts of a corpus.

    Args:
        parts: The parts, with N texts in total. A part is a file with the comments from one batch of source
            files.
        chosen: (N,) for each text, true if it is chosen.

    Returns:
        (M, SIGNATURE) bytes: one row for each of the M chosen texts.
    """
    kept, at = [], 0
    for part in parts:
        rows = part["signatures"]
        kept.append(rows[chosen[at : at + len(rows)]])
        at += len(rows)
    return np.concatenate(kept)


def _near(parts: list[Part], others: NearDuplicates) -> NDArray[np.bool_]:
    """Find the texts in some files of a corpus that equal or nearly repeat a text of another set.

    For example, the other set has the texts that are held out for testing.

    Args:
        parts: Parts of the corpus, with N texts in total. A part is a file with the comments from one batch
            of source files.
        others: An object that finds near duplicates of the texts in the other set.

    Returns:
        (N,) bool, true for each of the N texts that equals or nearly repeats a text of the other set.
    """
    return np.concatenate([others(part["signatures"]) for part in parts])
