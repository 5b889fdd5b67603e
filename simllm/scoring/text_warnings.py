"""Warnings about texts that are longer than the model's longest input, or that cleaning left empty."""

from __future__ import annotations

import warnings

from simllm.text_cleaning import LONGEST


def issue_warnings(texts: int, truncated: int, unreadable: int, max_length: int, on_long: str) -> None:
    """Warn about texts that are too long for the model, and about texts that cleaning left empty, if any.

    The warning shows the line of the user's code that called a method such as `SimLLM.score`.

    Args:
        texts: Number of all texts.
        truncated: Number of texts that are longer than the model's longest input.
        unreadable: Number of texts that are empty after cleaning, but were not before.
        max_length: Largest number of tokens in one input of the model.
        on_long: "window" if texts that are too long are read in pieces; otherwise, they are cut off.
    """
    if truncated:
        windows = f"read in windows of {max_length} tokens, up to {LONGEST:,} characters"
        treatment = windows if on_long == "window" else f"cut at {max_length} tokens"
        warnings.warn(f"{truncated} of {texts} texts {treatment}", stacklevel=4)
    if unreadable:
        message = "are empty after cleaning (the model reads ASCII); they score 0, or 1 against an equal text"
        warnings.warn(f"{unreadable} of {texts} texts {message}", stacklevel=4)
