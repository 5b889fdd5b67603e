"""Change of all strings in nested dictionaries, lists and tuples by a function."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray


def map_texts(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of nested dictionaries, lists and tuples, with `change` applied to each string."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {map_texts(key, change): map_texts(value, change) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(map_texts(value, change) for value in values)
    return values


def combined_seed(*numbers: int) -> int:
    """Combine numbers, such as a run's seed and the number of an update, into one 63-bit seed.

    In practice, different lists of numbers give different seeds. The exception are lists that differ only in
    zeros at the end: the numbers 1, 2 give the same seed as the numbers 1, 2, 0.
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def keyed_uniform(seed: int, keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute a random number from [0, 1) for each key.

    The same key and seed always give the same number. The numbers for some keys can therefore be computed
    without those for other keys. The generator is SplitMix64 (Steele, Lea and Flood, 2014).

    Args:
        seed: The seed.
        keys: (N,) whole numbers, such as the position of each token in the training data.

    Returns:
        (N,) random numbers.
    """
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


T = TypeVar("T")


class Prefetcher(Generic[T]):
    """A sequence whose next items are computed in a background thread.

    `prefetcher[n]` returns item n, and starts computing the next `depth` items.

    Args:
        make: Function that computes item n from the number n.
        depth: Number of items to compute in advance.
    """

    def __init__(self, make: Callable[[int], T], depth: int = 2) -> None:
        self.make = make
        self.depth = depth
        self._thread = ThreadPoolExecutor(1)
        self._items: dict[int, Future[T]] = {}

    def __getitem__(self, number: int) -> T:
        for upcoming in range(number, number + 1 + self.depth):
            if upcoming not in self._items:
                self._items[upcoming] = self._thread.submit(self.make, upcoming)
        return self._items.pop(number).result()
