"""Warnings about texts that are longer than the model's longest input, or that cleaning left empty."""

from __future__ import annotations

from simllm.text_cleaning import LONGEST

_READS = "the model reads ASCII"


def about_truncated(texts: int, truncated: int, max_length: int, on_long: str) -> list[str]:
    """Return the warning about `truncated` texts, longer than `max_length` tokens, if there are any."""
    windows = f"read in windows of {max_length} tokens, up to {LONGEST:,} characters"
    treatment = windows if on_long == "window" else f"cut at {max_length} tokens"
    return [f"{truncated} of {texts} texts {treatment}"] if truncated else []


def about_unreadable(texts: int, unreadable: int) -> list[str]:
    """Return the warning about texts that are empty after cleaning, but were not before, if there are any."""
    return [f"{unreadable} of {texts} texts are empty after cleaning ({_READS})"] if unreadable else []


def about_empty_pairs(pairs: int, empty: int, unreadable: int) -> list[str]:
    """Return the warning about pairs with a text that is empty after cleaning, if there are any.

    `unreadable` counts the texts that were not empty before cleaning.
    """
    how = f"empty after cleaning ({_READS})" if unreadable else "empty"
    scores = "they score 1 if both texts are equal, otherwise 0"
    return [f"{empty} of {pairs} pairs have a text that is {how}; {scores}"] if empty else []
