"""Reward function for reinforcement learning of a summarizer: the reward is simllm's score of a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simllm.errors import InputError
from simllm.metric import SimLLM


def reward(metric: SimLLM, column: str = "reference") -> Callable[..., list[float]]:
    """Make a reward function for the reinforcement learning library TRL.

    TRL calls the reward function with a list of completions, and with the columns of the data set as keyword
    arguments. A completion is a text, or a list of chat messages, whose last message is scored. The reward is
    the score of the completion against its reference. The reward function raises InputError if the data set
    lacks the column with the references. Several threads may call it at the same time.

    Args:
        metric: The metric that scores the completions.
        column: The name of the column with the references.

    Returns:
        The reward function. It returns a list with one reward for each completion.
    """

    def simllm_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        if column not in columns:
            raise InputError(f'reward: expected a column "{column}"; there are {", ".join(sorted(columns))}')
        texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
        return metric.score(texts, columns[column]).values.tolist()

    return simllm_reward
