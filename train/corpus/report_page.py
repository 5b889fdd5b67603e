"""The corpus report as a self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simllm.io.html_page import render
from train.corpus import report_figures

# Counts that do not say why something was left out.
_NOT_LEFT_OUT = {"files": ("read", "bytes"), "comments": (), "texts": ("read", "train", "test")}


def page(facts: dict[str, Any], longest: int) -> str:
    """Render the corpus report.

    Args:
        facts: The content of `report.json`.
        longest: The last number of words in `facts["lengths"]`; longer texts are counted there.

    Returns:
        The page, as HTML.
    """
    lengths = {kind: counts for kind, counts in facts["lengths"].items() if counts}
    return render(
        Path(__file__).with_name("report_page.html"),
        facts=facts,
        left_out={stage: _left_out(stage, tally) for stage, tally in facts["found"].items()},
        lengths=report_figures.lengths(lengths, longest) if lengths else "",
        vocabulary=report_figures.vocabulary(facts["vocabulary"]),
    )


def _left_out(stage: str, tally: dict[str, Any]) -> list[tuple[str, int, list[str]]]:
    """Return the reasons for leaving something out, with counts and examples, most frequent first."""
    counts = {kind: n for kind, n in tally["counts"].items() if n and kind not in _NOT_LEFT_OUT[stage]}
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    return [(kind, counts[kind], tally["examples"].get(kind, [])) for kind in kinds]
