"""`simllm explain`: show how much each word contributes to a score, as text, HTML or JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli import results
from simllm.cli.shared_options import CommonOptions
from simllm.io import output_file, packages, tables
from simllm.scoring.scores import CHANGED

if TYPE_CHECKING:
    from simllm.analysis.explanation import Explanation, Word

FORMATS = ("text", "json", "html")
EXAMPLES = """examples:
  simllm explain "adds two lists" "combines 2 arrays"
  simllm explain "adds two lists" "combines 2 arrays" -f html -o why.html
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm explain`."""

    candidate: str
    reference: str
    model: str | None = None


def add_options(explain: argparse.ArgumentParser) -> None:
    """Add the arguments of `simllm explain` to its parser."""
    explain.add_argument("candidate", metavar="CANDIDATE")
    explain.add_argument("reference", metavar="REFERENCE")


def run(options: Options) -> None:
    """Run `simllm explain`: score two texts and show each word's contribution."""
    output_file.check_output(options.output, options.overwrite)
    from simllm.analysis.explanation import explain
    from simllm.metric import SimLLM

    with results.collected() as messages:
        explanation = explain(SimLLM(options.model), options.candidate, options.reference)
    summary = results.tell(messages)
    # https://no-color.org: the variable switches colours off, whatever its value.
    coloured = options.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if options.format == "json":
        shown = json.dumps(asdict(explanation) | summary, indent=2, ensure_ascii=False) + "\n"
    else:
        shown = to_html(explanation) if options.format == "html" else to_text(explanation, coloured)
    tables.show(shown, options.output)


def to_text(explanation: Explanation, coloured: bool) -> str:
    """Format an explanation for a terminal; if `coloured`, with terminal escape codes."""
    lines = [f"score {explanation.score:.4f}"]
    if explanation.same is not None:
        lines.append(f"same  {explanation.same:.4f}{_note(explanation)}")
    most = _largest_contribution(explanation)
    for name, words, rest in _sides(explanation):
        lines += ["", f"{name:30} adds    matched with"]
        for word in words:
            shown = f"{word.text:30}"
            if coloured:
                # 24-bit colours: the background by the contribution, and black text whatever the terminal's
                # theme.
                red, green, blue = _colour(word.contribution / most)
                shown = f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{shown}\x1b[0m"
            lines.append(f"{shown} {word.contribution:+.3f}  {word.match} ({word.similarity:.2f})")
        # With this line, the contributions of each text add up to the score.
        lines.append(f"{'(start and end)':30} {rest:+.3f}")
    return "\n".join([*lines, "", f"signature: {explanation.signature}"]) + "\n"


def to_html(explanation: Explanation) -> str:
    """Format an explanation as a self-contained HTML page."""
    with packages.require_eval_extra():
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
    """Return the largest absolute contribution of a word, by which contributions are scaled to -1 to 1."""
    return max(abs(word.contribution) for word in (*explanation.candidate, *explanation.reference)) or 1.0


def _note(explanation: Explanation) -> str:
    """Return a note with the words that change the meaning; "" if the texts probably mean the same."""
    words = ", ".join(explanation.changing_words)
    return f"  {CHANGED}{': ' if words else ''}{words}" if explanation.changed else ""


def _sides(explanation: Explanation) -> list[tuple[str, list[Word], float]]:
    """List each text's name, words, and total contribution of its start and end tokens (<s> and </s>)."""
    return [
        ("candidate", explanation.candidate, explanation.rest[0]),
        ("reference", explanation.reference, explanation.rest[1]),
    ]


def _colour(weight: float) -> tuple[int, int, int]:
    """Return the RGB colour, from 0 to 255, of a weight between -1 (red) and 1 (green); 0 gives white."""
    strongest = (120, 200, 140) if weight > 0 else (235, 120, 110)
    red, green, blue = (round(255 + (channel - 255) * abs(weight)) for channel in strongest)
    return red, green, blue
