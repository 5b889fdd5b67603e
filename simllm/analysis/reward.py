"""Reward function for reinforcement learning of a summarizer: the reward is simllm's score of a summary."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from simllm.errors import InputError
from simllm.metric import SimLLM

# Such as <|im_end|>; DeepSeek writes other bars.
_SPECIAL = re.compile(r"(?:<[|\uff5c][^<>\s]{1,60}[|\uff5c]>|</?s>|<eos>|<pad>|<end_of_turn>)\Z")
_LONGEST = 64  # characters of a special token


def completion_text(completion: Any) -> str:
    """Return the text of a completion: a text, or the last message of a chat."""
    if isinstance(completion, list) and completion and isinstance(completion[-1], dict):
        completion = completion[-1].get("content")
    if not isinstance(completion, str):
        raise InputError("expected a text, or a list of chat messages with texts")
    return completion


def text_after(prompt: str, query: str) -> str:
    """Return what follows the prompt in a query (prompt and completion), without special tokens at its end.

    Special tokens are those of chat models, such as `<|im_end|>`.
    """
    if not query.startswith(prompt):
        raise InputError("expected a text that begins with its prompt")
    # Not one expression for all of them: with many spaces, it would take quadratic time.
    start, end = len(prompt), len(query)
    while True:
        while end > start and query[end - 1].isspace():
            end -= 1
        found = _SPECIAL.search(query[max(start, end - _LONGEST) : end])
        if not found:
            return query[start:end]
        end -= len(found[0])


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
        texts = [completion_text(completion) for completion in completions]
        return metric.score(texts, columns[column]).values.tolist()

    return simllm_reward
