"""The metric as a reward for training a summarizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simllm.errors import InputError
from simllm.metric import SimLLM


def reward(metric: SimLLM, column: str = "reference") -> Callable[..., list[float]]:
    """Make a reward function with TRL's calling convention, `reward(completions, **columns)`.

    A completion is a text or a list of messages, the last of which is scored, against the
    text in the data set's `column`. Threads may share it. It raises InputError where the data
    set lacks the column.
    """

    def simllm_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        if column not in columns:
            raise InputError(f'reward: expected a column "{column}"; there are {", ".join(sorted(columns))}')
        texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
        return metric.score(texts, columns[column]).values.tolist()

    return simllm_reward
