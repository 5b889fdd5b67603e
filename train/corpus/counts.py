"""Counts of files, comments and texts by kind, with examples."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any
from zlib import crc32

LONGEST = 400  # characters of an example; the rest is cut


class Tally:
    """Counts by kind, with a few examples of each kind.

    An example is one or several texts. The choice of examples does not depend on their order.

    Args:
        keep: Number of examples of each kind.
    """

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, kind: str, *example: str) -> None:
        """Count one example of a kind."""
        self.counts[kind] += 1
        self.show(kind, *example)

    def show(self, kind: str, *example: str) -> None:
        """Add an example without counting it, because it is counted elsewhere."""
        texts = [text[:LONGEST].encode("utf-8", "replace") for text in example]
        entry = (crc32(b"\t".join(texts)), tuple(text.decode() for text in texts))
        kept = self._examples.setdefault(kind, [])
        if (len(kept) < self.keep or entry < kept[-1]) and entry not in kept:
            insort(kept, entry)
            del kept[self.keep :]

    @property
    def examples(self) -> dict[str, list[tuple[str, ...]]]:
        """The examples of each kind, in the order of their hashes."""
        return {kind: [texts for _, texts in kept] for kind, kept in self._examples.items()}


@dataclass(frozen=True)
class Tallies:
    """Tallies of the files, comments and texts that were read or left out; each example is one text."""

    files: Tally = field(default_factory=Tally)
    comments: Tally = field(default_factory=Tally)
    texts: Tally = field(default_factory=Tally)

    def merge(self, facts: dict[str, Any]) -> None:
        """Add the counts and examples of other tallies, which `facts` returned."""
        for name, other in facts.items():
            own: Tally = getattr(self, name)
            own.counts.update(other["counts"])
            for kind, examples in other["examples"].items():
                for example in examples:
                    own.show(kind, example)

    def facts(self) -> dict[str, Any]:
        """Return all counts and examples as JSON values."""
        tallies: dict[str, Tally] = {part.name: getattr(self, part.name) for part in fields(self)}
        return {
            name: {
                "counts": dict(tally.counts),
                "examples": {kind: [text for (text,) in some] for kind, some in tally.examples.items()},
            }
            for name, tally in tallies.items()
        }

    def problems(self) -> list[str]:
        """Return one line for each kind of unreadable files."""
        return [
            f"{kind} ({count:,}): {self.files.examples[kind][0][0]}"
            for kind, count in self.files.counts.items()
            if kind.startswith("unreadable")
        ]
