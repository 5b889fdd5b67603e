"""The corpus report as a self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simllm.io.html_page import render
from train.corpus import report_figures

# Counts that do not say why something was left out.
_NOT_LEFT_OUT = {"files": ("read", "bytes"), "comments": (), "texts": ("read", "train", "test")}


def render_page(facts: dict[str, Any], most_words: int) -> str:
    """Render the content of `report.json` as HTML; the last bin of the lengths has `most_words` or more."""
    lengths = {kind: counts for kind, counts in facts["lengths"].items() if counts}
    return render(
        Path(__file__).with_name("report_page.html"),
        facts=facts,
        left_out={stage: _left_out(stage, tally) for stage, tally in facts["found"].items()},
        lengths=report_figures.draw_lengths(lengths, most_words) if lengths else "",
        vocabulary=report_figures.draw_vocabulary(facts["vocabulary"]),
    )


def _left_out(stage: str, tally: dict[str, Any]) -> list[tuple[str, int, list[str]]]:
    """List the reasons of a stage ("files", "comments" or "texts") with counts and examples, frequent ones
    first.
    """
    counts = {kind: n for kind, n in tally["counts"].items() if n and kind not in _NOT_LEFT_OUT[stage]}
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    return [(kind, counts[kind], tally["examples"].get(kind, [])) for kind in kinds]
