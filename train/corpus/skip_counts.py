"""Counters of what was read or left out while a corpus was built, with some examples.

Files, comments and texts are counted by kind, such as "file too large".
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any
from zlib import crc32

LONGEST = 400  # characters of an example; the rest is cut


class Tally:
    """A counter of files, comments or texts by kind (such as "file too large"), with examples of each kind.

    An example is a tuple of texts, such as the path of a file, or the two texts of a pair. For each kind, the
    examples with the smallest hashes are stored. Therefore, the stored examples do not depend on the order in
    which examples are added.

    Args:
        keep: Largest number of examples that are stored for each kind.
    """

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.counts: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, kind: str, *example: str) -> None:
        """Add 1 to the count of a kind of file, comment or text, and add an example of this kind.

        Args:
            kind: The kind, such as "file too large".
            example: The texts of the example, such as the path of the file.
        """
        self.counts[kind] += 1
        self.add_example(kind, *example)

    def add_example(self, kind: str, *example: str) -> None:
        """Add an example of a kind of file, comment or text. The count of this kind stays the same.

        Args:
            kind: The kind, such as "file too large".
            example: The texts of the example, such as the path of the file.
        """
        texts = [text[:LONGEST].encode("utf-8", "replace") for text in example]
        entry = (crc32(b"\t".join(texts)), tuple(text.decode() for text in texts))
        kept = self._examples.setdefault(kind, [])
        if (len(kept) < self.keep or entry < kept[-1]) and entry not in kept:
            insort(kept, entry)
            del kept[self.keep :]

    @property
    def examples(self) -> dict[str, list[tuple[str, ...]]]:
        """The stored examples: a dict from each kind, such as "file too large", to a list of examples.

        The list is sorted by the hashes of the examples. An example is a tuple of texts, such as the path of
        a file.
        """
        return {kind: [texts for _, texts in kept] for kind, kept in self._examples.items()}


@dataclass(frozen=True)
class Tallies:
    """Three counters of what was read or left out while a corpus was built: files, comments and texts.

    Each counter has a count for each kind, and may store some examples of the kind. Most kinds are reasons
    for leaving something out, such as "file too large". Some are not: for example, "read" is the number of
    all files or texts that were read.

    Attributes:
        files: Counter of source files. An example is the path of a file, often followed by an error message.
        comments: Counter of comments that a filter rejected. An example is the raw comment.
        texts: Counter of the texts from the comments. An example is the text.
    """

    files: Tally = field(default_factory=Tally)
    comments: Tally = field(default_factory=Tally)
    texts: Tally = field(default_factory=Tally)

    def merge(self, facts: dict[str, Any]) -> None:
        """Add the counts and the stored examples of another `Tallies` object to this object.

        They are counts and examples of the files, comments and texts that were read or left out while a
        corpus was built.

        Args:
            facts: The result of the other object's method `facts`, which may come from another process.
        """
        for name, other in facts.items():
            own: Tally = getattr(self, name)
            own.counts.update(other["counts"])
            for kind, examples in other["examples"].items():
                for example in examples:
                    own.add_example(kind, example)

    def facts(self) -> dict[str, Any]:
        """Return the counts and the examples of the three counters (files, comments, texts) as JSON values.

        Returns:
            A dict with the keys `files`, `comments` and `texts`. Each value is a dict with two entries.
            `counts` maps each kind, such as the reason "file too large", to a number. `examples` maps each
            kind to the stored examples, a list of strings.
        """
        tallies: dict[str, Tally] = {part.name: getattr(self, part.name) for part in fields(self)}
        return {
            name: {
                "counts": dict(tally.counts),
                "examples": {kind: [text for (text,) in some] for kind, some in tally.examples.items()},
            }
            for name, tally in tallies.items()
        }

    def problems(self) -> list[str]:
        """Return a warning for each kind of problem in reading files, such as "unreadable file".

        A warning has the kind, the number of times that it was counted, and one example.
        """
        return [
            f"{kind} ({count:,}): {self.files.examples[kind][0][0]}"
            for kind, count in self.files.counts.items()
            if kind.startswith("unreadable")
        ]
