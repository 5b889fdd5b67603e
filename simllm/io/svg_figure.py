"""Matplotlib figures as SVG elements for HTML pages, all in the same style."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

BLUE, GREY, INK, PALE = "#0b6e99", "#9aa5b1", "#333333", "#d9dee3"
_STYLE: Any = {
    "svg.fonttype": "none",  # keep text as text, so that it can be searched and has the font of the page
    "text.parse_math": False,  # a label may hold dollar signs
    "svg.hashsalt": "simllm",  # the same data give the same file
    "font.family": "sans-serif",
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def style(font_size: float = 9) -> contextlib.AbstractContextManager[None]:
    """Give matplotlib figures the style of simllm's HTML pages during a `with` block.

    Args:
        font_size: The size of all text, in points.
    """
    return mpl.rc_context({**_STYLE, "font.size": font_size})


def svg_element(figure: Figure) -> str:
    """Return a matplotlib figure as an SVG element for an HTML page.

    The ids that matplotlib writes into `<g>` elements are removed, because two figures on one page would
    have the same ids.
    """
    file = io.StringIO()
    with style(), warnings.catch_warnings():
        # The browser has fonts for all glyphs.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    text = file.getvalue()
    return re.sub(r'<g id="[^"]*">', "<g>", text[text.index("<svg") :])
