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
from simllm.cli.shared_options import CommonOptions, refuse
from simllm.errors import InputError
from simllm.io import output_file, packages, reading, tables
from simllm.scoring.scores import CHANGED

if TYPE_CHECKING:
    from simllm.analysis.code_explanation import CodeExplanation
    from simllm.analysis.explanation import Clause, ClauseExplanation, Explanation, Word

FORMATS = ("text", "json", "html")
EXAMPLES = """examples:
  simllm explain "adds two lists" "combines 2 arrays"
  simllm explain "adds two lists" "combines 2 arrays" -f html -o why.html
  simllm explain "adds two lists and prints them" --code add.py
"""
# Those whose comments look alike need no other rules.
_LANGUAGES = {
    ".py": "python",
    ".rb": "ruby",
    ".php": "php",
    ".java": "java",
    ".js": "javascript",
    ".go": "go",
}


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm explain`."""

    candidate: str
    reference: str | None = None
    code: Path | None = None
    language: str | None = None
    model: str | None = None
    long: str | None = None


def add_options(explain: argparse.ArgumentParser) -> None:
    """Add the arguments of `simllm explain` to its parser."""
    explain.add_argument("candidate", metavar="CANDIDATE")
    explain.add_argument("reference", nargs="?", metavar="REFERENCE")
    explain.add_argument("--code", type=Path, metavar="FILE", help="a function, in place of REFERENCE")
    explain.add_argument(
        "--language", metavar="NAME", help="of the code, such as java; default: by the name of the file"
    )
    explain.add_argument(
        "--long", choices=("sentences", "whole"),
        help="texts with several sentences: clause by clause (the default), or as a whole, word by word",
    )  # fmt: skip


def run(options: Options) -> None:
    """Run `simllm explain`: score two texts and show the contribution of each word or clause."""
    output_file.check_output(options.output, options.overwrite)
    if (options.reference is None) == (options.code is None):
        raise InputError("expected a candidate, and either a reference or --code FILE")
    if options.code is not None:
        _explain_against_code(options, options.code)
        return
    assert options.reference is not None
    refuse(options, ("language",), "goes with --code FILE")
    from simllm.analysis.explanation import explain, explain_clauses
    from simllm.metric import SimLLM

    with results.collected() as messages:
        metric, pair = SimLLM(options.model, long=options.long), (options.candidate, options.reference)
        by_clause = explain_clauses(metric, *pair)
        explanation = by_clause or explain(metric, *pair)
    summary = results.tell(messages)
    # https://no-color.org: the variable switches colours off, whatever its value.
    coloured = options.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if options.format == "json":
        shown = json.dumps(asdict(explanation) | summary, indent=2, ensure_ascii=False) + "\n"
    else:
        shown = to_html(explanation) if options.format == "html" else to_text(explanation, coloured)
    tables.show(shown, options.output)


def _explain_against_code(options: Options, file: Path) -> None:
    """Show the statements of a summary without support in the code, and what supports the others."""
    refuse(options, ("long",), "does not go with --code")
    if options.format == "html":
        raise InputError("--format html does not go with --code")
    code = reading.whole_text(file)
    from simllm.analysis.code_explanation import explain_against_code
    from simllm.metric import SimLLM

    with results.collected() as messages:
        language = options.language or _LANGUAGES.get(file.suffix)
        explanation = explain_against_code(SimLLM(options.model), options.candidate, code, language)
    summary = results.tell(messages)
    if options.format == "json":
        shown = json.dumps(asdict(explanation) | summary, indent=2, ensure_ascii=False) + "\n"
    else:
        shown = _statements_to_text(explanation)
    tables.show(shown, options.output)


def _statements_to_text(explanation: CodeExplanation) -> str:
    """Format the statements of a summary for a terminal: score, and identifiers or a note."""
    lines = [f"score {explanation.score:.4f}"]
    if explanation.fits is not None:
        lines.append(f"fits  {explanation.fits:.4f}")
    lines += ["", f"{'statement':{_WIDTH}}   score  supported by"]
    for each in explanation.statements:
        support = ", ".join(each.identifiers)
        if each.supported is False:
            support = "[without support in the code]"
        lines.append(f"{_shorten(each.text):{_WIDTH}} {each.score:z7.2f}  {support}".rstrip())
    return "\n".join([*lines, "", f"signature: {explanation.signature}"]) + "\n"


def to_text(explanation: Explanation | ClauseExplanation, coloured: bool) -> str:
    """Format an explanation for a terminal; if `coloured`, with terminal escape codes."""
    from simllm.analysis.explanation import ClauseExplanation

    if isinstance(explanation, ClauseExplanation):
        return _clauses_to_text(explanation, coloured)
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


_WIDTH = 58  # characters of a clause in a line


def _clauses_to_text(explanation: ClauseExplanation, coloured: bool) -> str:
    """Format the clauses of both texts for a terminal: similarity, probability, and a note."""
    lines = [f"score {explanation.score:.4f}"]
    if explanation.same is not None:
        lines.append(f"same  {explanation.same:.4f}")
    own, other = explanation.words
    lines += [
        "",
        f"precision      {explanation.precision:.4f}  how much of the candidate is supported",
        f"recall         {explanation.recall:.4f}  how much of the reference is said",
        f"length factor  {explanation.length_factor:.4f}  {own} words, reference {other}",
    ]
    for name, clauses in (("candidate", explanation.candidate), ("reference", explanation.reference)):
        lines += ["", f"{name:{_WIDTH}} similar  same  matched with"]
        lines += [_clause_line(clause, coloured) for clause in clauses]
    return "\n".join([*lines, "", f"signature: {explanation.signature}"]) + "\n"


def _clause_line(clause: Clause, coloured: bool) -> str:
    """Format a clause as a line, in colour if it has a note."""
    text = f"{_shorten(clause.text):{_WIDTH}}"
    if coloured and clause.note:
        red, green, blue = _colour(-1)
        text = f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{text}\x1b[0m"
    same = "    " if clause.same is None else f"{clause.same:.2f}"
    note = f"  [{clause.note}]" if clause.note else ""
    return f"{text} {clause.similarity:z7.2f}  {same}  {_shorten(clause.match)}{note}"


def _shorten(text: str) -> str:
    """Cut a text that is too long for a line of a terminal."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def to_html(explanation: Explanation | ClauseExplanation) -> str:
    """Format an explanation as a self-contained HTML page."""
    with packages.require_eval_extra():
        from simllm.io.html_page import render
    from simllm.analysis.explanation import ClauseExplanation

    if isinstance(explanation, ClauseExplanation):
        page = Path(__file__).with_name("explain_clauses.html")
        return render(page, explanation=explanation, colour=_colour)
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
