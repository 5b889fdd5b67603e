"""Prefetching: a thread computes the next items while the main program uses the current item."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

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
