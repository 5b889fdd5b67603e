"""Check of arguments that must be lists of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def text_list(name: str, texts: Sequence[str]) -> list[str]:
    """Check that an argument is a list of texts, and return a list.

    Args:
        name: The name of the argument, for error messages.
        texts: The argument: n texts.

    Raises:
        TypeError: `texts` is a single string or not iterable, or an item is not a string.
    """
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected a list of texts, got a lone string; write [text]")
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"{name}: expected a list of texts, got {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{index}]: expected a text, got {type(text).__name__}")
    return texts
