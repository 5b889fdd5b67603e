"""Limits for requests to a model: the number of requests in a minute, and the total cost by token prices."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.read_json_object import read_json
from simllm.io.strict_dataclass_loading import build
from simllm.llm.endpoint import MOST_TOKENS, ChatReply, LostReplyError


@dataclass(frozen=True)
class Price:
    """The prices of the tokens of a language model, in any currency.

    Attributes:
        input: Price of a million tokens of requests.
        output: Price of a million tokens of replies.
    """

    input: float
    output: float

    def __post_init__(self) -> None:
        """Check the prices.

        Raises:
            InputError: A price is negative, or no finite number.
        """
        for price in (self.input, self.output):
            # A comparison, because a whole number may be too large for a float.
            if not 0 <= price <= sys.float_info.max / MOST_TOKENS:
                raise InputError("a price must be a finite number from 0")

    def of(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Compute the cost of the tokens in requests and replies, in the currency of the prices.

        Args:
            prompt_tokens: The number of tokens of the requests; None if it is not known.
            completion_tokens: The number of tokens of the replies; None if it is not known.

        Returns:
            The cost; None if one of the numbers is None.
        """
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def read_price(file: Path, model: str) -> Price:
    """Read the prices of a model's tokens from a JSON file.

    For a model M, the file is, for example, `{"M": {"input": 3, "output": 15}}`. These are the prices,
    in any currency, of a million tokens of requests ("input") and of replies ("output").

    Raises:
        InputError: The file is wrong, or lacks the model.
    """
    values = read_json(file)
    if not isinstance(values.get(model), dict):
        raise InputError(f'{file}: expected {{"{model}": {{"input": 3, "output": 15}}}}, a million tokens')
    return build(Price, values[model], f"{file}, {model}")


class RequestBudget:
    """Limits for the requests that a run sends to a model: their rate and their total cost.

    Several threads may use the same object at the same time.

    Args:
        price: The prices of the model's tokens; None if they are not known.
        most_cost: The total cost, in the currency of `price`, after which no more requests are sent; None for
            no limit. Requests that were sent before are still finished.
        rate: The largest number of requests in a minute; None for no limit.

    Raises:
        InputError: A limit is not positive, or `most_cost` is given without a price.
    """

    def __init__(self, price: Price | None, most_cost: float | None, rate: float | None) -> None:
        if most_cost is not None and price is None:
            raise InputError("--max-cost needs --prices FILE")
        for name, value in (("--max-cost", most_cost), ("--rate", rate)):
            if value is not None and not value > 0:
                raise InputError(f"{name} {value}: expected a positive number")
        self._price, self._most_cost = price, most_cost
        self._seconds = 60 / rate if rate else 0.0
        self._lock = threading.Lock()
        self._next, self._cost = 0.0, 0.0

    def wait(self, stopped: threading.Event) -> None:
        """Wait until the limits for cost and for requests in a minute allow the next request.

        Args:
            stopped: An event that is set when the run stops; it ends the wait.

        Raises:
            LostReplyError: The total cost has reached its limit, or the run has stopped. So there will be no
                reply.
        """
        with self._lock:
            if self._most_cost is not None and self._cost >= self._most_cost:
                raise LostReplyError(f"the largest cost ({self._most_cost:g}) is reached")
            now = time.monotonic()
            begin = max(self._next, now)
            self._next = begin + self._seconds
        if stopped.wait(begin - now) or stopped.is_set():
            raise LostReplyError("the run has stopped")

    def spend(self, reply: ChatReply) -> None:
        """Add the cost of a reply and its request to the total cost, if the total cost is limited.

        Raises:
            InputError: The total cost is limited, but the endpoint does not report the numbers of tokens.
        """
        if self._most_cost is None or self._price is None or reply.text is None:
            return
        cost = self._price.of(reply.prompt_tokens, reply.completion_tokens)
        if cost is None:
            raise InputError("--max-cost: the endpoint does not report tokens")
        with self._lock:
            self._cost += cost
