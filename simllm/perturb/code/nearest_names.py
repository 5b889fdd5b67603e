"""New names for functions, parameters and variables, made by replacing words of the old name.

One word, or all words, of the old name are replaced by similar words. Words are similar if the cosine of
their embeddings is large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from simllm.perturb.code.new_names import Namer, known_words, replaced_words, split_words

_MOST = 5  # replacements for each word


def nearest_names(embed: Callable[[Sequence[str]], np.ndarray]) -> Namer:
    """Make a function that proposes new names for a function, parameter or variable.

    In each proposal, one word or all words of the old name are replaced by words with similar embeddings,
    compared by cosine. The replacements are chosen among all words in simllm's lists of synonyms.

    Args:
        embed: The function that computes the (n, D) embeddings of n words, such as `SimLLM.embed`.

    Returns:
        A function that takes the old name and its kind, such as "variable". It yields the proposals; those
        with the most similar words come first.
    """
    words = known_words()
    embeddings = _normalized(embed(words))

    def nearest(word: str) -> list[str]:
        """Return up to 5 similar words that can replace a word.

        These are the words in simllm's lists of synonyms whose embeddings have the largest cosine with the
        embedding of `word`. The word itself and its other forms, such as its plural, are left out.
        """
        order = np.argsort(-(embeddings @ _normalized(embed([word]))[0]), kind="stable")
        others = (words[int(number)] for number in order[: 4 * _MOST])
        return [other for other in others if not _is_form(other, word)][:_MOST]

    def propose(name: str, kind: str) -> Iterator[str]:
        return replaced_words(name, [nearest(word.lower()) for word in split_words(name)])

    return propose


def _normalized(embeddings: np.ndarray) -> np.ndarray:
    """Scale embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)


def _is_form(other: str, word: str) -> bool:
    """Guess from the first letters whether two words are forms of one word, such as "item" and "items"."""
    short, long = sorted((other, word), key=len)
    return long.startswith(short[: max(4, len(short) - 1)])
