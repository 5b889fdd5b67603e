"""Rendering of HTML pages from jinja2 templates; each template extends `html_page.html` in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup


def render(template: Path, **values: Any) -> str:
    """Render a self-contained HTML page from a jinja2 template that extends `html_page.html`.

    Values are escaped, except SVG elements that the template passes through the filter `svg`.
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
    environment.filters["svg"] = Markup
    return environment.get_template(template.name).render(values)
