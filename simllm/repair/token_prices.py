"""The prices of a model's tokens, and the cost of the tokens in the requests and replies of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.read_json_object import read_json
from simllm.io.strict_dataclass_loading import build
from simllm.repair.attempt_results import AttemptResult


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
            InputError: A price is negative.
        """
        if min(self.input, self.output) < 0:
            raise InputError("a price cannot be negative")

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


def tokens_and_cost(attempts: Sequence[AttemptResult], price: Price | None) -> dict[str, Any]:
    """Count the requests to the model, and sum their tokens and costs.

    Args:
        attempts: The attempts, finished or not. Each round of an attempt is one request.
        price: The price of the model's tokens; None if it is not known.

    Returns:
        A dict with these keys:

        - "requests": The number of requests.
        - "prompt tokens", "completion tokens": The number of tokens of all requests, and of all replies. None
          if the endpoint did not report the number for every request.
        - "cost": The total cost. None if a number of tokens is None, or if the price is not known.
    """
    rounds = [one for attempt in attempts for one in attempt.rounds]
    prompt = _sum([one.prompt_tokens for one in rounds])
    completion = _sum([one.completion_tokens for one in rounds])
    return {
        "requests": len(rounds),
        "prompt tokens": prompt,
        "completion tokens": completion,
        "cost": price.of(prompt, completion) if price else None,
    }


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
