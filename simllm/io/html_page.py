"""Rendering of HTML pages from jinja2 templates, which all extend the template `html_page.html`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup


def render(template: Path, **values: Any) -> str:
    """Render a self-contained HTML page from a template.

    Args:
        template: The file of a jinja2 template, which begins with `{% extends "html_page.html" %}`.
        values: The variables of the template. Their text is escaped for HTML; only the filter `svg` inserts
            a text, an SVG element, without escaping.

    Returns:
        The page, as HTML.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["svg"] = Markup
    return environment.get_template(template.name).render(values)
