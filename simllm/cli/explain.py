"""`simllm explain`: show the contribution of each word to a score, as text, HTML or JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING

from simllm.cli.score_table import CHANGED
from simllm.io import files

if TYPE_CHECKING:
    from simllm.analysis.explanation import Explanation, Word

FORMATS = ("text", "json", "html")
HELP = "show which words make a score"
EXAMPLES = """examples:
  simllm explain "adds two lists" "combines 2 arrays"
  simllm explain "adds two lists" "combines 2 arrays" -f html -o why.html
"""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
.words span { display: inline-block; padding: .1rem .45rem; margin: .15rem; border-radius: .3rem; }
table { border-collapse: collapse; } th { text-align: left; font-weight: 600; }
td, th { padding: .2rem 1rem .2rem 0; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: inline-block; height: .7rem; border-radius: .2rem; }
footer { margin-top: 2rem; color: #666; font-size: .8rem; overflow-wrap: anywhere; }
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
    form = options.format or "text"
    shown = (
        json.dumps(asdict(explanation), indent=2, ensure_ascii=False) + "\n"
        if form == "json"
        else to_html(explanation) if form == "html" else to_text(explanation, coloured)
    )  # fmt: skip
    if options.output:
        files.write(options.output, shown)
    else:
        sys.stdout.write(shown)


def to_text(explanation: Explanation, coloured: bool) -> str:
    """Format an explanation as text for a terminal, with colours or without."""
    lines = [f"score {explanation.score:.4f}"]
    if explanation.same is not None:
        reasons = ", ".join(explanation.changing_words)
        note = f"  {CHANGED}" + (f": {reasons}" if reasons else "") if explanation.changed else ""
        lines.append(f"same  {explanation.same:.4f}{note}")
    for name, words, rest in _sides(explanation):
        lines += ["", f"{name:30} adds    matched with"]
        most = max(abs(word.contribution) for word in words)
        for word in words:
            shown = f"{word.text:30}"
            if coloured:
                red, green, blue = _colour(word.contribution / most if most else 0.0)
                shown = f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{shown}\x1b[0m"
            lines.append(f"{shown} {word.contribution:+.3f}  {word.match} ({word.similarity:.2f})")
        lines.append(f"{'(start and end)':30} {rest:+.3f}")
    return "\n".join([*lines, "", f"signature: {explanation.signature}"]) + "\n"


def to_html(explanation: Explanation) -> str:
    """Format an explanation as a self-contained HTML page."""
    parts = []
    for name, words, rest in _sides(explanation):
        most = max(abs(word.contribution) for word in words)
        chips, rows = [], []
        for word in words:
            colour = "rgb({},{},{})".format(*_colour(word.contribution / most if most else 0.0))
            width = 6 * abs(word.contribution) / most if most else 0.0
            chips.append(f'<span style="background:{colour}">{escape(word.text)}</span>')
            rows.append(
                f'<tr><td>{escape(word.text)}</td><td class="n">{word.contribution:+.3f}</td>'
                f'<td><span class="bar" style="width:{width:.2f}rem;background:{colour}"></span></td>'
                f'<td>{escape(word.match)}</td><td class="n">{word.similarity:.2f}</td></tr>'
            )
        rows.append(f'<tr><td><em>start and end</em></td><td class="n">{rest:+.3f}</td></tr>')
        head = "<tr><th>word</th><th>adds</th><th></th><th>matched with</th><th>similarity</th></tr>"
        parts.append(
            f'<h2>{name}</h2><p class="words">{"".join(chips)}</p><table>{head}{"".join(rows)}</table>'
        )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Why this score</title>'
        f"<style>{_STYLE}</style><h1>Score {explanation.score:.4f}</h1>"
        "<p>The contributions of each text's words sum to the score: green adds, red subtracts.</p>"
        f"{''.join(parts)}<footer>{escape(explanation.signature)}</footer></html>\n"
    )


def _sides(explanation: Explanation) -> list[tuple[str, list[Word], float]]:
    """Return the name, the words and the rest of both texts."""
    return [
        ("candidate", explanation.candidate, explanation.rest[0]),
        ("reference", explanation.reference, explanation.rest[1]),
    ]


def _colour(weight: float) -> tuple[int, int, int]:
    """Return an RGB colour for a weight: red for -1, white for 0, green for 1."""
    strongest = (120, 200, 140) if weight > 0 else (235, 120, 110)
    red, green, blue = (round(255 + (channel - 255) * abs(weight)) for channel in strongest)
    return red, green, blue
