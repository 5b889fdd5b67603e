"""LaTeX tables, and escaping of text for LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}  # wrong in old fonts
_SPECIAL |= {character: f"\\{character}" for character in "&%$#_{}"}


def escape_latex(text: str) -> str:
    """Escape what is special in LaTeX, remove control characters, and put the text on one line."""
    line = re.sub(r"[\x00-\x1f\x7f-\x9f]", "", " ".join(text.split()))
    return "".join(_SPECIAL.get(character, character) for character in line)


def latex_table(
    caption: str,
    label: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    alignment: str | None = None,
    small: bool = False,
) -> str:
    """Return a LaTeX table for the package booktabs; caption, header and cells are LaTeX.

    `label` has no prefix "tab:". By default, `alignment` is left for the first column and right for all
    others.
    """
    # A label may have been the name of a file, and \ref allows few characters.
    label = "tab:" + re.sub(r"[^\w/-]", "-", label)
    body = "".join("  " + " & ".join(row) + " \\\\\n" for row in rows)
    size = "\\small\n" if small else ""
    columns = alignment or "l" + "r" * (len(header) - 1)
    return (
        f"\\begin{{table}}\n\\caption{{{caption}}}\\label{{{label}}}\n{size}\\begin{{tabular}}{{{columns}}}\n"
        f"  \\toprule\n  {' & '.join(header)} \\\\\n  \\midrule\n{body}  \\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )
