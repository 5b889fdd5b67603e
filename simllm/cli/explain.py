"""`simllm explain`: show the contribution of each word to a score, as text, HTML or JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli import metric_choice
from simllm.cli.score_output import CHANGED
from simllm.io import files, tables

if TYPE_CHECKING:
    from simllm.analysis.explanation import Explanation, Word

FORMATS = ("text", "json", "html")
HELP = "show which words make a score"
EXAMPLES = """examples:
  simllm explain "adds two lists" "combines 2 arrays"
  simllm explain "adds two lists" "combines 2 arrays" -f html -o why.html
"""


def add_options(explain: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    explain.add_argument("candidate", metavar="CANDIDATE")
    explain.add_argument("reference", metavar="REFERENCE")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    files.check_output(options.output, [], options.overwrite)
    from simllm.analysis.explanation import explain
    from simllm.metric import SimLLM

    explanation = explain(SimLLM(options.model), options.candidate, options.reference)
    coloured = options.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if options.format == "json":
        shown = json.dumps(asdict(explanation), indent=2, ensure_ascii=False) + "\n"
    else:
        shown = to_html(explanation) if options.format == "html" else to_text(explanation, coloured)
    tables.show(shown, options.output)


def to_text(explanation: Explanation, coloured: bool) -> str:
    """Return the explanation as lines for a terminal."""
    lines = [f"score {explanation.score:.4f}"]
    if explanation.same is not None:
        lines.append(f"same  {explanation.same:.4f}{_note(explanation)}")
    most = _largest_contribution(explanation)
    for name, words, rest in _sides(explanation):
        lines += ["", f"{name:30} adds    matched with"]
        for word in words:
            shown = f"{word.text:30}"
            if coloured:
                red, green, blue = _colour(word.contribution / most)
                shown = f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{shown}\x1b[0m"
            lines.append(f"{shown} {word.contribution:+.3f}  {word.match} ({word.similarity:.2f})")
        lines.append(f"{'(start and end)':30} {rest:+.3f}")
    return "\n".join([*lines, "", f"signature: {explanation.signature}"]) + "\n"


def to_html(explanation: Explanation) -> str:
    """Return the explanation as a self-contained HTML page."""
    with metric_choice.require_eval_extra():
        from simllm.io.html_page import render
    most = _largest_contribution(explanation)
    return render(
        Path(__file__).with_name("explain.html"),
        explanation=explanation,
        sides=_sides(explanation),
        most=most,
        colour=_colour,
    )


def _largest_contribution(explanation: Explanation) -> float:
    """Return the largest absolute contribution of a word; 1 if no word contributes anything."""
    return max(abs(word.contribution) for word in (*explanation.candidate, *explanation.reference)) or 1.0


def _note(explanation: Explanation) -> str:
    """Return the note that the meaning may have changed, with the words that changed it; or ""."""
    words = ", ".join(explanation.changing_words)
    return f"  {CHANGED}{': ' if words else ''}{words}" if explanation.changed else ""


def _sides(explanation: Explanation) -> list[tuple[str, list[Word], float]]:
    """Return the name of each text, its words, and the contribution of its start and end tokens."""
    return [
        ("candidate", explanation.candidate, explanation.rest[0]),
        ("reference", explanation.reference, explanation.rest[1]),
    ]


def _colour(weight: float) -> tuple[int, int, int]:
    """Return a colour from red (-1) over white (0) to green (1)."""
    strongest = (120, 200, 140) if weight > 0 else (235, 120, 110)
    red, green, blue = (round(255 + (channel - 255) * abs(weight)) for channel in strongest)
    return red, green, blue
