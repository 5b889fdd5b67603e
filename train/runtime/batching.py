"""Random numbers that depend only on their keys, and items that are prepared in advance."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray


def combined_seed(*numbers: int) -> int:
    """Combine numbers, such as a run's seed and the number of an update, into one 63-bit seed.

    Zeros at the end do not count: the numbers 1, 2 give the same seed as 1, 2, 0.
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def keyed_uniform(seed: int, keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute a random number from [0, 1) for each of (N,) whole numbers, whatever the other keys are.

    The generator is SplitMix64 (Steele, Lea and Flood, 2014).
    """
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    # A float64 has 53 bits.
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


T = TypeVar("T")


_EXECUTORS = WeakSet[ThreadPoolExecutor]()


def stop_prefetching() -> None:
    """Drop what the prefetchers of this process would still compute; Python would wait for it at its end."""
    for executor in list(_EXECUTORS):
        executor.shutdown(wait=False, cancel_futures=True)


class Prefetcher(Generic[T]):
    """A sequence of `make(0)`, `make(1)`, …; reading an item starts to compute the `depth` next items."""

    def __init__(self, make: Callable[[int], T], depth: int = 2) -> None:
        self.make = make
        self.depth = depth
        # A single thread, so that `make` need not be safe for several.
        self._thread = ThreadPoolExecutor(1)
        _EXECUTORS.add(self._thread)
        self._items: dict[int, Future[T]] = {}

    def __getitem__(self, number: int) -> T:
        for upcoming in range(number, number + 1 + self.depth):
            if upcoming not in self._items:
                self._items[upcoming] = self._thread.submit(self.make, upcoming)
        return self._items.pop(number).result()
