"""The report about a corpus, as a page (`report.html`) and as JSON (`report.json`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.io.files import printable
from train.corpus.corpus_folder import PAGE, REPORT
from train.corpus.counts import Tallies, Tally
from train.corpus.part_file import CommentTexts

NEAR_SHOWN, SAMPLES, LONGEST_BIN = 20, 10, 60


class Report:
    """Counts and samples of a corpus, collected one comment at a time.

    Args:
        near: Indices of the near duplicates.
        original: (T,) index of the text that each text repeats.
    """

    def __init__(self, near: NDArray[np.int64], original: NDArray[np.int64]) -> None:
        shown = near[np.linspace(0, len(near) - 1, min(NEAR_SHOWN, len(near))).astype(int)]
        self._near = [(int(index), int(original[index])) for index in shown]
        self._texts: dict[int, str | None] = {index: None for pair in self._near for index in pair}
        self._languages: dict[str, Counter[str]] = {}
        self._sources: dict[str, Counter[str]] = {}
        self._repositories: Counter[str] = Counter()
        self._lengths: dict[str, Counter[int]] = {"summary": Counter(), "description": Counter()}
        self._vocabulary: set[str] = set()
        self._growth: list[tuple[int, int]] = []
        self._count = 0
        self._samples, self._pairs = Tally(SAMPLES), Tally(SAMPLES)

    def note_texts(self, at: int, texts: list[str]) -> None:
        """Note consecutive texts, duplicates included, for the sample of near duplicates.

        Args:
            at: The index of the first text.
            texts: The texts.
        """
        for index, text in enumerate(texts, at):
            if index in self._texts:
                self._texts[index] = text

    def add_comment(self, source: str, row: CommentTexts, kept: list[str]) -> None:
        """Count a comment of a source, and its texts that are kept."""
        language = row.comment["language"] or "unknown"
        for counts in (
            self._languages.setdefault(language, Counter()),
            self._sources.setdefault(printable(source), Counter()),
        ):
            counts["comments"] += 1
            counts["texts"] += len(kept)
            counts["words"] += sum(len(text.split()) for text in kept)
            counts[language] += 1
        self._repositories[row.comment["repository"] or "unknown"] += 1
        where = " ".join(row.comment[key] for key in ("repository", "path", "function")).strip()
        self._samples.add(language, row.texts[0], where)
        for text in kept:
            self._text(text, "summary" if text == row.summary else "description")

    def add_pair(self, a: str, b: str, kind: str) -> None:
        """Count a pair of texts of a kind."""
        self._pairs.add(kind, a, b)

    def _text(self, text: str, kind: str) -> None:
        """Count the words of a text of a kind."""
        words = text.split()
        self._lengths[kind][min(len(words), LONGEST_BIN)] += 1
        self._vocabulary.update(words)
        self._count += 1
        if not self._count & (self._count - 1):  # a power of two
            self._growth.append((self._count, len(self._vocabulary)))

    def facts(self, tallies: Tallies) -> dict[str, Any]:
        """Return the content of `report.json`."""
        texts = self._texts
        return {
            "found": tallies.facts(),
            "languages": {name: dict(self._languages[name]) for name in sorted(self._languages)},
            "sources": {name: dict(counts) for name, counts in self._sources.items()},
            "repositories": dict(self._repositories.most_common(30)),
            "lengths": {kind: dict(sorted(counts.items())) for kind, counts in self._lengths.items()},
            "vocabulary": [*self._growth, (self._count, len(self._vocabulary))],
            "near_duplicates": [(texts[copy], texts[first]) for copy, first in self._near],
            "pairs": {"counts": dict(self._pairs.counts), "examples": _sorted(self._pairs)},
            "samples": _sorted(self._samples),
        }

    def write(self, folder: Path, tallies: Tallies) -> None:
        """Write `report.json` and `report.html` into a folder."""
        from train.corpus.report_page import page  # matplotlib is slow to import, also in every worker

        facts = self.facts(tallies)
        (folder / REPORT).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        (folder / PAGE).write_text(page(facts, LONGEST_BIN), encoding="utf-8")


def _sorted(tally: Tally) -> dict[str, list[tuple[str, ...]]]:
    """Return the examples of each kind, sorted by kind."""
    return dict(sorted(tally.examples.items()))
