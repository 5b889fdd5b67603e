"""Counts of kinds of things, with examples."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any
from zlib import crc32

LONGEST = 400  # characters of an example that are kept


class Tally:
    """Counts of kinds of things, with a few examples of each kind.

    An example is one text or several. Which examples are kept does not depend on their order.
    """

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, kind: str, *example: str) -> None:
        """Count one thing of a kind, and offer it as an example."""
        self.counts[kind] += 1
        self.show(kind, *example)

    def show(self, kind: str, *example: str) -> None:
        """Offer an example of something that is counted elsewhere."""
        texts = [text[:LONGEST].encode("utf-8", "replace") for text in example]
        entry = (crc32(b"\t".join(texts)), tuple(text.decode() for text in texts))
        kept = self._examples.setdefault(kind, [])
        if (len(kept) < self.keep or entry < kept[-1]) and entry not in kept:
            insort(kept, entry)
            del kept[self.keep :]

    @property
    def examples(self) -> dict[str, list[tuple[str, ...]]]:
        """A sample of each kind, in the order of the examples' hashes."""
        return {kind: [texts for _, texts in kept] for kind, kept in self._examples.items()}


@dataclass(frozen=True)
class Tallies:
    """Counts of files, comments and texts that were read or left out; each example is one text."""

    files: Tally = field(default_factory=Tally)
    comments: Tally = field(default_factory=Tally)
    texts: Tally = field(default_factory=Tally)

    def merge(self, facts: dict[str, Any]) -> None:
        """Add another one's counts and examples, given as its `facts()`."""
        for name, found in facts.items():
            mine: Tally = getattr(self, name)
            mine.counts.update(found["counts"])
            for kind, examples in found["examples"].items():
                for example in examples:
                    mine.show(kind, example)

    def facts(self) -> dict[str, Any]:
        """All counts and examples, for JSON."""
        tallies: dict[str, Tally] = {part.name: getattr(self, part.name) for part in fields(self)}
        return {
            name: {
                "counts": dict(tally.counts),
                "examples": {kind: [text for (text,) in some] for kind, some in tally.examples.items()},
            }
            for name, tally in tallies.items()
        }

    def problems(self) -> list[str]:
        """A line for each kind of files that could not be read."""
        return [
            f"{kind} ({count:,}): {self.files.examples[kind][0][0]}"
            for kind, count in self.files.counts.items()
            if kind.startswith("unreadable")
        ]
