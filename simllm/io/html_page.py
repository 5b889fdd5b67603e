"""Rendering of HTML pages from jinja2 templates; each template extends `html_page.html` in this folder."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from simllm.io.tables import format_number, format_p_value

DASH = "\u2013"  # for what is not defined


def render(template: Path, **values: Any) -> str:
    """Render a self-contained HTML page from a jinja2 template that extends `html_page.html`.

    Values are escaped, except SVG elements that the template passes through the filter `svg`, with a name for
    people who do not see them and for the file that they can be saved to. Each template has the functions
    `number` and `probability`, which format a number or a p-value, and None as a dash.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # A misspelt variable must be an error, not an empty place on the page.
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["svg"] = _figure
    environment.globals["number"] = _number
    environment.globals["probability"] = lambda p: DASH if p is None else format_p_value(p)
    return environment.get_template(template.name).render(values)


def _number(value: float | None, digits: int = 3) -> str:
    return DASH if value is None else format_number(value, digits)


def _figure(svg: str, name: str) -> Markup:
    # A link rather than a script: some pages allow no scripts.
    data = base64.b64encode(svg.encode()).decode()
    file = "-".join(re.findall(r"\w+", name)) + ".svg"
    return Markup(
        '<div role="img" aria-label="{}">{}</div>'
        '<a class="save" download="{}" href="data:image/svg+xml;base64,{}">save the figure</a>'
    ).format(name, Markup(svg), file, data)
