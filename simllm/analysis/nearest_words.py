"""New names for code from the nearest words of a learned metric."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.metric import SimLLM
from simllm.perturb.code.new_names import Namer, known_words, replaced_words, split_words

_MOST = 5  # proposals for each word


def nearest_names(metric: SimLLM) -> Namer:
    """Return a function that proposes names in which words are replaced by their nearest words.

    The words are those of the lists of synonyms; their embeddings are compared by the cosine.

    Args:
        metric: The metric whose embeddings are compared.
    """
    words = known_words()
    embeddings = _normalized(metric.embed(words))

    def nearest(word: str) -> list[str]:
        """Return the words that are nearest to a word, without those that share its stem."""
        order = np.argsort(-(embeddings @ _normalized(metric.embed([word]))[0]), kind="stable")
        others = (words[int(number)] for number in order[: 4 * _MOST])
        return [other for other in others if not _is_form(other, word)][:_MOST]

    def propose(name: str, kind: str) -> Iterator[str]:
        return replaced_words(name, [nearest(word.lower()) for word in split_words(name)])

    return propose


def _normalized(embeddings: np.ndarray) -> np.ndarray:
    """Scale embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)


def _is_form(other: str, word: str) -> bool:
    """Return whether two words are forms of one word, such as "item" and "items"."""
    short, long = sorted((other, word), key=len)
    return long.startswith(short[: max(4, len(short) - 1)])
