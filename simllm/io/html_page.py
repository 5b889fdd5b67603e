"""Rendering of HTML pages from jinja2 templates; each template extends `html_page.html` in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup


def render(template: Path, **values: Any) -> str:
    """Render a self-contained HTML page from a template.

    Args:
        template: The file of a jinja2 template, which begins with `{% extends "html_page.html" %}`.
        values: The variables of the template. Text is escaped for HTML. Only a variable that the template
            passes through the filter `svg` is inserted without escaping; its text is an SVG element.

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
