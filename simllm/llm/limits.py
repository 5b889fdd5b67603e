"""Limits for requests to a model: the number of requests in a minute, and the total cost by token prices."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError, OptionError
from simllm.io.reading import build, read_json
from simllm.llm.endpoint import StoppedError
from simllm.llm.reply import MOST_TOKENS, Reply


@dataclass(frozen=True)
class Price:
    """The prices of a million tokens of requests and of replies, in any currency."""

    input: float
    output: float

    def __post_init__(self) -> None:
        """Check the prices."""
        for price in (self.input, self.output):
            # A comparison, because a whole number may be too large for a float.
            if not 0 <= price <= sys.float_info.max / MOST_TOKENS:
                raise InputError("a price must be a finite number from 0")

    def of(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Compute the cost of the tokens in requests and replies; None if one of the numbers is not known."""
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def read_price(file: Path, model: str) -> Price:
    """Read the prices of model M from a JSON file such as `{"M": {"input": 3, "output": 15}}`."""
    values = read_json(file)
    if not isinstance(values.get(model), dict):
        raise InputError(f'{file}: expected {{"{model}": {{"input": 3, "output": 15}}}}, a million tokens')
    return build(Price, values[model], f"{file}, {model}")


class RequestBudget:
    """Limits for the requests of a run, for several threads: `rate` in a minute, `most_cost` in total.

    None means no limit. `most_cost`, in the currency of `price`, stops new requests; those under way are
    still finished.

    Attributes:
        cost: What was spent so far; None if the prices, or the tokens of a reply, are not known.
    """

    def __init__(self, price: Price | None, most_cost: float | None, rate: float | None) -> None:
        self._price, self._most_cost = price, most_cost
        self._seconds = 60 / rate if rate else 0.0
        self._lock = threading.Lock()
        self._next = 0.0
        self.cost: float | None = 0.0 if price else None

    def wait(self, stopped: threading.Event) -> None:
        """Wait until the limits allow the next request; raise `StoppedError` if there will be none.

        The event `stopped` is set when the run stops; it ends the wait.
        """
        with self._lock:
            if self._most_cost is not None and (self.cost or 0.0) >= self._most_cost:
                raise StoppedError(f"the largest cost ({self._most_cost:g}) is reached")
            now = time.monotonic()
            # Each thread takes the next free moment while it has the lock, and waits for it without the lock.
            begin = max(self._next, now)
            self._next = begin + self._seconds
        if (begin > now and stopped.wait(begin - now)) or stopped.is_set():
            raise StoppedError("the run has stopped")

    def spend(self, reply: Reply) -> None:
        """Add the cost of a reply and its request to the total cost."""
        # A request that failed for good is refused without a charge.
        if self._price is None or reply.text is None:
            return
        cost = self._price.of(reply.prompt_tokens, reply.completion_tokens)
        if cost is None and self._most_cost is not None:
            raise OptionError("{max_cost}: the endpoint does not report tokens")
        with self._lock:
            self.cost = None if self.cost is None or cost is None else self.cost + cost
