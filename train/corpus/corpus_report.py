"""The report about a corpus of code comments, as a page (`report.html`) and as JSON (`report.json`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.io.printable_path import printable
from train.corpus.corpus_folder import PAGE, REPORT
from train.corpus.part_file import CommentTexts
from train.corpus.skip_counts import Tallies, Tally

NEAR_SHOWN, SAMPLES, LONGEST_BIN = 20, 10, 60


class Report:
    """Counts and examples for the report about a corpus of code comments, collected one comment at a time.

    Args:
        near: The indices of the texts that nearly repeat an earlier text. All T texts of the corpus are
            numbered from 0. The report shows some of these texts as examples of near duplicates.
        original: (T,) for each text, the index of the earlier text that it repeats or nearly repeats. A text
            that repeats no earlier text has its own index.
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

    def note_texts(self, first_index: int, texts: list[str]) -> None:
        """Store those of the given texts that the report will show as examples of near duplicates.

        The constructor has chosen the indices of these examples. All other given texts are ignored.

        Args:
            first_index: The index of the first given text, among all texts of the corpus.
            texts: Consecutive texts of the corpus, including texts that repeat earlier ones.
        """
        for index, text in enumerate(texts, first_index):
            if index in self._texts:
                self._texts[index] = text

    def add_comment(self, source: str, row: CommentTexts, kept: list[str]) -> None:
        """Add a comment to the counts and examples of the report.

        The texts of a comment are its summary (first sentence) and its other paragraphs.

        Args:
            source: The name of the source that contains the comment, such as a data set or a folder.
            row: The comment with all its cleaned texts.
            kept: Those texts of the comment that repeat no earlier text of the corpus. Only these texts are
                counted.
        """
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
            self._count_words(text, "summary" if text == row.summary else "description")

    def add_pair(self, a: str, b: str, kind: str) -> None:
        """Count a pair of texts that mean the same, and add the pair to the examples.

        Args:
            a: The first text.
            b: The second text.
            kind: The kind of pair. "description": the summary (first sentence) and the description (the
                sentences after it) of one comment. "version": the comments on two versions of a function.
                "override": the comments on a method and its override.
        """
        self._pairs.add(kind, a, b)

    def _count_words(self, text: str, kind: str) -> None:
        """Add a text of a comment to the counts of text lengths and of distinct words.

        Args:
            text: The summary (first sentence) of the comment, or one of its other paragraphs.
            kind: "summary" for the summary, "description" for another paragraph.
        """
        words = text.split()
        self._lengths[kind][min(len(words), LONGEST_BIN)] += 1
        self._vocabulary.update(words)
        self._count += 1
        if not self._count & (self._count - 1):  # a power of two
            self._growth.append((self._count, len(self._vocabulary)))

    def facts(self, tallies: Tallies) -> dict[str, Any]:
        """Return the counts and examples of the report about the corpus, as stored in `report.json`.

        Args:
            tallies: Counters of the files, comments and texts that were read or left out.
        """
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
        """Write the report about the corpus to `report.json` and `report.html`.

        Args:
            folder: The folder of the corpus.
            tallies: Counters of the files, comments and texts that were read or left out.
        """
        from train.corpus.report_page import render_page  # matplotlib is slow to import, also in every worker

        facts = self.facts(tallies)
        (folder / REPORT).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        (folder / PAGE).write_text(render_page(facts, LONGEST_BIN), encoding="utf-8")


def _sorted(tally: Tally) -> dict[str, list[tuple[str, ...]]]:
    """Return the examples that a counter has stored for the report, sorted by kind.

    Args:
        tally: A counter of things by kind, such as comments by programming language. It also stores some
            examples of each kind.

    Returns:
        A dict from each kind to its list of examples. An example is a tuple of texts.
    """
    return dict(sorted(tally.examples.items()))
