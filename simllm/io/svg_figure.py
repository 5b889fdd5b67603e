"""Matplotlib figures as SVG elements for HTML pages, all in the same style on every machine.

All drawing code takes matplotlib's classes from here, so that a user's `matplotlibrc`, style or backend
changes no figure, and matplotlib's messages about caches and fonts do not reach the terminal.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from simllm.errors import InputError


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    """Keep matplotlib's log, such as "building the font cache", off the terminal during a `with` block."""
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _import_matplotlib() -> None:
    """Import matplotlib, even if the user's settings for it are wrong."""
    backend = os.environ.get("MPLBACKEND")
    with _quiet_log(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about keys in the user's matplotlibrc
        try:
            importlib.import_module("matplotlib.figure")
        except ImportError:
            raise
        except Exception:
            os.environ.pop("MPLBACKEND", None)
            for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
                del sys.modules[name]  # parts that the failed import left
            try:
                importlib.import_module("matplotlib.figure")
            except (ValueError, OSError) as error:
                raise InputError(f"matplotlib: cannot be used ({error}); see its file matplotlibrc") from None
            finally:
                if backend is not None:
                    os.environ["MPLBACKEND"] = backend


_import_matplotlib()

import matplotlib as mpl  # noqa: E402
from matplotlib.axes import Axes as Axes  # noqa: E402
from matplotlib.figure import Figure as Figure  # noqa: E402

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


@contextlib.contextmanager
def style(font_size: float = 9) -> Iterator[None]:
    """Give figures the style of simllm's HTML pages, and no style of the user, during a `with` block.

    Figures are made and saved inside the block. `font_size` is the size of all text, in points.
    """
    # Setting the backend would close the user's figures, and files are drawn without one.
    defaults: Any = {key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"}
    with _quiet_log(), mpl.rc_context({**defaults, **_STYLE, "font.size": font_size}):
        yield


def svg_element(figure: Figure) -> str:
    """Return a matplotlib figure as an SVG element for an HTML page."""
    file = io.StringIO()
    with style(), warnings.catch_warnings():
        # The browser has fonts for all glyphs.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    text = file.getvalue()
    # Two figures on one page would have the same ids.
    return re.sub(r'<g id="[^"]*">', "<g>", text[text.index("<svg") :])
