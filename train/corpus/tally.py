"""Counts, each with a few examples."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any
from zlib import crc32


class Tally:
    """How many there were of each kind, and the same few examples in whatever order they came."""

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, str]]] = {}

    def add(self, kind: str, example: str) -> None:
        """Count one."""
        self.counts[kind] += 1
        self.show(kind, example)

    def show(self, kind: str, example: str) -> None:
        """Offer an example of something that is counted elsewhere."""
        data = example[:400].encode("utf-8", "replace")
        entry, kept = (crc32(data), data.decode()), self._examples.setdefault(kind, [])
        if (len(kept) < self.keep or entry < kept[-1]) and entry not in kept:
            insort(kept, entry)
            del kept[self.keep :]

    @property
    def examples(self) -> dict[str, list[str]]:
        """A sample of each kind, by the examples' hashes."""
        return {kind: [text for _, text in kept] for kind, kept in self._examples.items()}


@dataclass(frozen=True)
class Tallies:
    """What was found and left out, on the way from files to comments to texts."""

    files: Tally = field(default_factory=Tally)
    comments: Tally = field(default_factory=Tally)
    texts: Tally = field(default_factory=Tally)

    def merge(self, facts: dict[str, Any]) -> None:
        """Add what others found, given as their `facts()`."""
        for name, found in facts.items():
            mine: Tally = getattr(self, name)
            mine.counts.update(found["counts"])
            for kind, examples in found["examples"].items():
                for example in examples:
                    mine.show(kind, example)

    def facts(self) -> dict[str, Any]:
        """All counts and examples, for JSON."""
        tallies: dict[str, Tally] = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: {"counts": dict(t.counts), "examples": t.examples} for name, t in tallies.items()}

    def problems(self) -> list[str]:
        """A line for each kind of trouble with files, for people to read at once."""
        return [
            f"{kind} ({count:,}): {self.files.examples[kind][0]}"
            for kind, count in self.files.counts.items()
            if kind.startswith("unreadable")
        ]
