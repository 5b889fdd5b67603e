"""Rendering of HTML pages from jinja2 templates, which extend `html_page.html` to share its style."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup


def render(template: Path, **values: Any) -> str:
    """Render a self-contained page.

    Args:
        template: A jinja2 template; it begins with `{% extends "html_page.html" %}`.
        values: The variables of the template. Text is escaped, unless the filter `svg` marks it as
            an SVG element.

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
