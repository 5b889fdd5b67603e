"""The charts of the report about a corpus, as SVG elements."""

from __future__ import annotations

import math
from html import escape

_BLUE, _GREY = "#4a7ab5", "#e4e4e4"


def bars(title: str, heights: dict[int, int]) -> str:
    """Draw a histogram; `heights` has the height of the bar of each number from 1."""
    width, height, highest, last = 420, 120, max(heights.values()), max(10, *heights)
    step = width / last
    parts = [_text(width / 2, 10, f"{title}, at most {highest:,}")]
    for number, count in heights.items():
        tall = count / highest * (height - 16)
        parts.append(
            f"<rect x='{(number - 1) * step:.1f}' y='{height - tall:.1f}' width='{max(step - 1, 1):.1f}' "
            f"height='{tall:.1f}' fill='{_BLUE}'><title>{number}: {count:,}</title></rect>"
        )
    parts += [_text((number - 0.5) * step, height + 14, str(number)) for number in range(10, last + 1, 10)]
    return _svg(width, height + 20, parts)


def logarithmic(title: str, points: list[tuple[int, int]]) -> str:
    """Draw a line through points (from (1, 1) on) with two logarithmic axes."""
    width, height, left, top = 420, 160, 60, 20
    decades = [math.log10(max(10, *(point[axis] for point in points))) for axis in (0, 1)]

    def x(value: float) -> float:
        return left + math.log10(max(1, value)) / decades[0] * width

    def y(value: float) -> float:
        return top + height * (1 - math.log10(max(1, value)) / decades[1])

    parts = [_text(left + width / 2, 12, title)]
    for value in (10**power for power in range(math.floor(decades[0]) + 1)):
        parts.append(_text(x(value), top + height + 16, f"{value:,}"))
    for value in (10**power for power in range(math.floor(decades[1]) + 1)):
        parts.append(
            f"<line x1='{left}' x2='{left + width}' y1='{y(value):.0f}' y2='{y(value):.0f}' "
            f"stroke='{_GREY}'/>"
        )
        parts.append(_text(left - 6, y(value) + 4, f"{value:,}", "end"))
    line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
    parts.append(f"<polyline points='{line}' fill='none' stroke='{_BLUE}' stroke-width='2'/>")
    return _svg(left + width + 40, top + height + 24, parts)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f"<text x='{x:.0f}' y='{y:.0f}' text-anchor='{anchor}'>{escape(text)}</text>"


def _svg(width: int, height: int, parts: list[str]) -> str:
    return f"<svg width='{width}' height='{height}'>{''.join(parts)}</svg>"
