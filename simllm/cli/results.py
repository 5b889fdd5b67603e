"""Warnings that change how a result is read: they stand on standard error and in the result itself."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


@contextlib.contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the warnings of a `with` block in a list, which is filled at the end of the block."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        # By default, Python shows a warning once a place, and a result needs its own.
        warnings.simplefilter("always")
        try:
            yield messages
        finally:
            # Subclasses are of libraries, about their future; they change no result.
            found = (str(warning.message) for warning in caught if warning.category is UserWarning)
            messages += dict.fromkeys(found)


def tell(messages: Sequence[str]) -> dict[str, Any]:
    """Issue warnings; return them as an entry for the summary of a table, empty without warnings."""
    for message in messages:
        warnings.warn(message, stacklevel=2)
    return {"warnings": list(messages)} if messages else {}


def say_facts(facts: Mapping[str, Any]) -> None:
    """Print facts on standard error, for formats that have no place for them."""
    shown = (
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in facts.items()
    )
    print(f"simllm: {', '.join(shown)}", file=sys.stderr)
