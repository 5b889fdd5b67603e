"""HTML pages: rendered from jinja2 templates that extend `html_page.html` and so share one style."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup


def render(template: Path, **values: Any) -> str:
    """Render a page that needs no other file.

    Args:
        template: A jinja2 template; it begins with `{% extends "html_page.html" %}`.
        values: What the template names. Text is escaped; the filter `svg` marks an SVG element.
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
