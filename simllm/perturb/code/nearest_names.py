"""New names from words with similar embeddings (by cosine)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from simllm.perturb.code.new_names import Namer, known_words, replaced_words, split_words

_MOST = 5  # replacements for each word


def nearest_names(embed: Callable[[Sequence[str]], np.ndarray]) -> Namer:
    """Make a namer that replaces one word, or all words, of a name by words with similar embeddings.

    The replacements come from simllm's lists of synonyms. `embed` returns the (n, D) embeddings of n words,
    as `SimLLM.embed` does.
    """
    words = known_words()
    embeddings = _normalized(embed(words))

    def nearest(word: str) -> list[str]:
        """Return up to 5 known words with the largest cosine, without other forms of the word itself."""
        order = np.argsort(-(embeddings @ _normalized(embed([word]))[0]), kind="stable")
        # Many of the nearest words are forms of the word, so more candidates are taken than are returned.
        others = (words[int(number)] for number in order[: 4 * _MOST])
        return [other for other in others if not _is_form(other, word)][:_MOST]

    def propose(name: str, kind: str) -> Iterator[str]:
        return replaced_words(name, [nearest(word.lower()) for word in split_words(name)])

    return propose


def _normalized(embeddings: np.ndarray) -> np.ndarray:
    """Scale (n, D) embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)


def _is_form(other: str, word: str) -> bool:
    """Guess from the first letters whether two words are forms of one word, such as "item" and "items"."""
    # No stemmer: a wrongly rejected word costs only one proposal of several.
    short, long = sorted((other, word), key=len)
    return long.startswith(short[: max(4, len(short) - 1)])
