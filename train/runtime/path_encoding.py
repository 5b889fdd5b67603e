"""Conversion of paths in configurations between UTF-8 and the encoding of the locale."""

from __future__ import annotations

import os
from typing import Any

from train.runtime.map_nested_texts import map_texts


def decode_paths(values: Any) -> Any:
    """Repair configuration strings, such as paths, that Python decoded in a locale other than UTF-8.

    The strings may come from the command line. In an ASCII locale, Python has replaced each non-ASCII byte of
    the command line by a surrogate character. This function restores the bytes and decodes them as UTF-8. In
    a UTF-8 locale, the strings stay the same.

    Args:
        values: Nested dictionaries, lists and tuples of configuration values.

    Returns:
        A copy of `values`, with all strings repaired.
    """
    return map_texts(values, lambda text: os.fsencode(text).decode("utf-8", "surrogateescape"))


def encode_path(text: str) -> str:
    """Convert a string of a configuration to the form that `open` expects for paths in the current locale.

    In an ASCII locale, each byte of a non-ASCII character becomes a surrogate character. In a UTF-8 locale,
    the string stays the same. `decode_paths` does the opposite.
    """
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))
