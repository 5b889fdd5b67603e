"""Things made before they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """`ahead[n]` is `make(n)`; a thread makes the next ones while the device works on this one."""

    def __init__(self, make: Callable[[int], T], depth: int = 2) -> None:
        self.make = make
        self.depth = depth
        self._pool = ThreadPoolExecutor(1)
        self._made: dict[int, Future[T]] = {}

    def __getitem__(self, number: int) -> T:
        for next_one in range(number, number + 1 + self.depth):
            if next_one not in self._made:
                self._made[next_one] = self._pool.submit(self.make, next_one)
        return self._made.pop(number).result()
