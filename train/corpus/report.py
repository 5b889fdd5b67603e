"""The report about a corpus, as a page (`report.html`) and as JSON (`report.json`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.io.tables import printable
from train.corpus.config import PAGE, REPORT
from train.corpus.parts import CommentTexts, Tallies, Tally

NEAR_SHOWN, SAMPLES, LONGEST_BIN = 20, 10, 60


class Report:
    """Counts and examples, collected one comment at a time.

    `near` has the indices of the texts that nearly repeat an earlier text; `original` is (T,).
    """

    def __init__(self, near: NDArray[np.int64], original: NDArray[np.int64]) -> None:
        # Evenly spread over the corpus, so that the examples come from many sources.
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
        """Store those of some consecutive texts that are examples of near duplicates."""
        for index, text in enumerate(texts, first_index):
            if index in self._texts:
                self._texts[index] = text

    def add_comment(self, source: str, row: CommentTexts, kept: list[str]) -> None:
        """Count a comment; `kept` are those of its texts that repeat no earlier text."""
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
        """Count a pair of the kind "description" (summary and description), "version" or "override"."""
        self._pairs.add(kind, a, b)

    def _count_words(self, text: str, kind: str) -> None:
        words = text.split()
        self._lengths[kind][min(len(words), LONGEST_BIN)] += 1
        self._vocabulary.update(words)
        self._count += 1
        # The growth of the vocabulary is noted at powers of two.
        if not self._count & (self._count - 1):
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
        """Write `report.json` and `report.html`."""
        facts = self.facts(tallies)
        (folder / REPORT).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        (folder / PAGE).write_text(render_page(facts, LONGEST_BIN), encoding="utf-8")


def _sorted(tally: Tally) -> dict[str, list[tuple[str, ...]]]:
    """Return the examples of a tally, sorted by kind."""
    return dict(sorted(tally.examples.items()))


def draw_lengths(counts: Mapping[str, Mapping[int, int]], most_words: int) -> str:
    """Draw a histogram of text lengths in words, with one panel for each kind of text, as an SVG element.

    `counts` maps a length to the number of texts; the last bin has `most_words` words or more.
    """
    # Not at the top: matplotlib is slow to import, also in every worker.
    from simllm.io.svg_figure import BLUE, PALE, Figure, style, svg_element

    with style():
        figure = Figure(figsize=(9.8, 2.4), layout="constrained")
        panels = figure.subplots(1, len(counts), squeeze=False).ravel()
        for axes, (kind, bars) in zip(panels, counts.items(), strict=True):
            axes.bar(list(bars), list(bars.values()), width=0.85, color=BLUE)
            ticks = range(10, most_words + 1, 10)
            axes.set_xticks(ticks, [*map(str, ticks[:-1]), f"≥ {most_words}"])
            axes.set_xlim(0, most_words + 1)
            axes.set_xlabel("words")
            axes.set_title(f"{kind}: {sum(bars.values()):,} texts", loc="left", fontsize=10)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", color=PALE, linewidth=0.6)
            axes.set_axisbelow(True)
        return svg_element(figure)


def draw_vocabulary(growth: Sequence[tuple[int, int]]) -> str:
    """Draw the growth of the vocabulary as an SVG element, from pairs (texts, distinct words in them)."""
    from simllm.io.svg_figure import BLUE, PALE, Figure, style, svg_element

    with style():
        figure = Figure(figsize=(4.9, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.plot(*zip(*growth, strict=True), "o-", color=BLUE, markersize=3)
        axes.set(xscale="log", yscale="log", xlabel="texts", ylabel="different words")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=PALE, linewidth=0.6)
        return svg_element(figure)


# Counts that do not say why something was left out.
_NOT_LEFT_OUT = {"files": ("read", "bytes"), "comments": (), "texts": ("read", "train", "test")}


def render_page(facts: dict[str, Any], most_words: int) -> str:
    """Render the content of `report.json` as HTML; the last bin of the lengths has `most_words` or more."""
    from simllm.io.html_page import render

    lengths = {kind: counts for kind, counts in facts["lengths"].items() if counts}
    return render(
        Path(__file__).with_name("report.html"),
        facts=facts,
        left_out={stage: _left_out(stage, tally) for stage, tally in facts["found"].items()},
        lengths=draw_lengths(lengths, most_words) if lengths else "",
        vocabulary=draw_vocabulary(facts["vocabulary"]),
    )


def _left_out(stage: str, tally: dict[str, Any]) -> list[tuple[str, int, list[str]]]:
    """List the reasons of a stage ("files", "comments" or "texts") with counts and examples, frequent ones
    first.
    """
    counts = {kind: n for kind, n in tally["counts"].items() if n and kind not in _NOT_LEFT_OUT[stage]}
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    return [(kind, counts[kind], tally["examples"].get(kind, [])) for kind in kinds]
