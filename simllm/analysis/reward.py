"""The metric as a reward function for training a summarizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simllm.errors import InputError
from simllm.metric import SimLLM


def reward(metric: SimLLM, column: str = "reference") -> Callable[..., list[float]]:
    """Make a reward function with TRL's calling convention, `reward(completions, **columns)`.

    The function scores each completion (a text, or the last one of a list of messages) against the
    text in a column of the data set. It raises InputError if the data set lacks the column. Threads
    may share it.

    Args:
        metric: The metric.
        column: The name of the column with the references.
    """

    def simllm_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        if column not in columns:
            raise InputError(f'reward: expected a column "{column}"; there are {", ".join(sorted(columns))}')
        texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
        return metric.score(texts, columns[column]).values.tolist()

    return simllm_reward
