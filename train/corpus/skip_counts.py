"""Tallies: counters of what was read or left out while a corpus was built, with some examples."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any
from zlib import crc32

# Characters of an example; the rest is cut.
LONGEST = 400


class Tally:
    """A counter by kind, with up to `keep` examples of each kind; an example is a tuple of texts.

    The examples with the smallest hashes are stored, so that they do not depend on the order of additions.
    """

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, kind: str, *example: str) -> None:
        """Count one thing of a kind, and add it as an example."""
        self.counts[kind] += 1
        self.add_example(kind, *example)

    def add_example(self, kind: str, *example: str) -> None:
        """Add an example without counting it."""
        # Names that the system cannot decode have surrogates, which UTF-8 lacks.
        texts = [text[:LONGEST].encode("utf-8", "replace") for text in example]
        entry = (crc32(b"\t".join(texts)), tuple(text.decode() for text in texts))
        kept = self._examples.setdefault(kind, [])
        if (len(kept) < self.keep or entry < kept[-1]) and entry not in kept:
            insort(kept, entry)
            del kept[self.keep :]

    @property
    def examples(self) -> dict[str, list[tuple[str, ...]]]:
        """The examples by kind, sorted by their hashes."""
        return {kind: [texts for _, texts in kept] for kind, kept in self._examples.items()}


@dataclass(frozen=True)
class Tallies:
    """The tallies of a build.

    Most kinds are reasons for leaving something out; "read" counts all files or texts.

    Attributes:
        files: Of source files; an example is a path, often followed by an error message.
        comments: Of comments that a filter rejected; an example is the raw comment.
        texts: Of the texts of comments.
    """

    files: Tally = field(default_factory=Tally)
    comments: Tally = field(default_factory=Tally)
    texts: Tally = field(default_factory=Tally)

    def merge(self, facts: dict[str, Any]) -> None:
        """Add the `facts` of other tallies, which may come from another process."""
        for name, other in facts.items():
            own: Tally = getattr(self, name)
            own.counts.update(other["counts"])
            for kind, examples in other["examples"].items():
                for example in examples:
                    own.add_example(kind, example)

    def facts(self) -> dict[str, Any]:
        """Return the `counts` and `examples` of each tally as JSON values."""
        tallies: dict[str, Tally] = {part.name: getattr(self, part.name) for part in fields(self)}
        return {
            name: {
                "counts": dict(tally.counts),
                "examples": {kind: [text for (text,) in some] for kind, some in tally.examples.items()},
            }
            for name, tally in tallies.items()
        }

    def problems(self) -> list[str]:
        """Return a warning for each kind of problem in reading files, with its count and one example."""
        return [
            f"{kind} ({count:,}): {self.files.examples[kind][0][0]}"
            for kind, count in self.files.counts.items()
            if kind.startswith("unreadable")
        ]
