"""New names for variables and functions in code, made from words whose embeddings are similar."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.metric import SimLLM
from simllm.perturb.code.new_names import Namer, known_words, replaced_words, split_words

_MOST = 5  # replacements for each word


def nearest_names(metric: SimLLM) -> Namer:
    """Make a function that proposes new names for a function, parameter or variable.

    In each proposal, one or all words of the old name are replaced by words with similar embeddings. The
    replacements come from the lists of synonyms in simllm. Embeddings are compared by their cosine.

    Args:
        metric: The metric that computes the embeddings.

    Returns:
        A function that takes the old name and its kind, such as "variable", and yields proposals, best first.
    """
    words = known_words()
    embeddings = _normalized(metric.embed(words))

    def nearest(word: str) -> list[str]:
        """Return up to 5 words whose embeddings are nearest to that of a word, without forms of this word."""
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
    """Guess whether two words are forms of one word, such as "item" and "items", by their first letters."""
    short, long = sorted((other, word), key=len)
    return long.startswith(short[: max(4, len(short) - 1)])
