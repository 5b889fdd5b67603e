"""The output of `simllm compare`: comparisons of systems by one metric or several, as text, JSON or LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any

from simllm.io import tables
from simllm.io.tables import escape_latex, format_p_value

if TYPE_CHECKING:
    from simllm.analysis.comparison import Comparison, Difference


@dataclass(frozen=True)
class Compared:
    """Systems that are compared by one metric.

    Attributes:
        title: What the means are of: the name of the metric, or "wins" of a pair-wise judge.
        facts: Facts about the requests of a judge.
        corpus: A figure of each system's whole corpus, which only BLEU has.
    """

    title: str
    comparison: Comparison
    facts: Mapping[str, Any] = field(default_factory=dict)
    corpus: Mapping[str, float] = field(default_factory=dict)


Found = Mapping[str, Compared]  # by the name of the metric


def as_json(found: Found, warnings: Sequence[str], _baseline: str | None) -> str:
    """Format one comparison as an object, several as objects by metric."""
    values = {}
    for name, one in found.items():
        # json knows no arrays of numpy.
        values[name] = {**asdict(one.comparison), "wins": one.comparison.wins.tolist()}
        values[name] |= {"corpus": one.corpus} if one.corpus else {}
        values[name] |= {"judge": one.facts} if one.facts else {}
    whole = {"metrics": values} if len(values) > 1 else next(iter(values.values()))
    return json.dumps(tables.finite({**whole, "warnings": list(warnings)}), indent=2) + "\n"


def as_text(found: Found, warnings: Sequence[str], _baseline: str | None) -> str:
    """Format comparisons as tables: means, differences of pairs, and wins of row over column."""
    several = len(found) > 1
    parts = [_means_of_several(found) if several else _means(next(iter(found.values())).comparison)]
    parts.append(_pairs(found))
    for name, compared in found.items():
        systems = [system.name for system in compared.comparison.systems]
        wins = zip(systems, compared.comparison.wins.tolist(), strict=True)
        title = f"{name}: wins over" if several else "wins over"
        parts.append(((title, *systems), [(system, *row) for system, row in wins]))
    shown = []
    for columns, body in parts:
        widths = tables.widths([columns, *body])
        shown.append(tables.header(columns, widths) + tables.lines(body, widths))
    return "\n".join(shown) + tables.footer(_summary(found, warnings))


def _means(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    systems = [tuple(asdict(system).values()) for system in comparison.systems]
    return ("system", "mean", "95% low", "high"), systems


def _means_of_several(found: Found) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    means = [[system.mean for system in one.comparison.systems] for one in found.values()]
    names = [system.name for system in next(iter(found.values())).comparison.systems]
    return ("mean", *(one.title for one in found.values())), list(zip(names, *means, strict=True))


def _pairs(found: Found) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Make the table of differences; it has one p-value, the larger one, to fit 80 columns."""
    columns = ("metric", "a", "b", "a - b", "95% low", "high", "p", "d", "detectable")
    rows = [
        (name, one.a, one.b, one.difference, one.low, one.high, one.p, one.effect, one.detectable)
        for name, compared in found.items()
        for one in compared.comparison.differences
    ]
    if len(found) == 1:
        return columns[1:], [row[1:] for row in rows]
    return columns, rows


def _summary(found: Found, warnings: Sequence[str]) -> dict[str, Any]:
    several = len(found) > 1
    sizes = {name: one.comparison.n for name, one in found.items()}
    summary: dict[str, Any] = {"items": next(iter(sizes.values()))}
    if len(set(sizes.values())) > 1:
        summary = {f"items of {name}": n for name, n in sizes.items()}
    tests = "the larger of a paired bootstrap and a paired permutation test, two-sided, Holm-corrected"
    summary["p"] = f"{tests} within each metric" if several else tests
    summary["detectable"] = "smallest difference that so many items show in 80% of studies"
    for name, one in found.items():
        summary |= {f"corpus {name} of {system}": value for system, value in one.corpus.items()}
        summary[f"signature of {name}" if several else "signature"] = one.comparison.signature
        summary |= {f"{fact} of {name}" if several else fact: value for fact, value in one.facts.items()}
    return summary | ({"warnings": list(warnings)} if warnings else {})


def as_latex(found: Found, warnings: Sequence[str], baseline: str | None) -> str:
    """Format means and p-values as a LaTeX table with a note below; it needs the package booktabs.

    With several metrics, the intervals (if any) stand in a second line of each system, because a page is
    narrow. p is that of the difference from the baseline, or from the best system.
    """
    several = len(found) > 1
    systems = [system for one in found.values() for system in one.comparison.systems]
    has_second = several and not all(isnan(system.low) for system in systems)
    cells = {name: list(_cells(one.comparison, baseline)) for name, one in found.items()}
    width = 2 if several else 3
    head, second = ["System"], [""]
    for one in found.values():
        title = escape_latex(one.title)
        head.append(f"\\multicolumn{{2}}{{c}}{{{title}}}" if several else f"{title} & 95\\% interval & $p$")
        second.append("mean & $p$")
    rules = [f"\\cmidrule(lr){{{2 * i}-{2 * i + 1}}}" for i in range(1, len(found) + 1)]
    subhead = [" ".join(rules), " & ".join(second) + " \\\\"] if several else []
    names = [system.name for system in next(iter(found.values())).comparison.systems]
    rows = [
        " & ".join(line) + " \\\\"
        for name, *own in zip(names, *cells.values(), strict=True)
        for line in _lines(escape_latex(name), own, has_second)
    ]
    columns = 1 + width * len(found)
    sizes = sorted({one.comparison.n for one in found.values()})
    against = f"against {escape_latex(baseline)}" if baseline else "against the system with the highest mean"
    star = f"differs from {escape_latex(baseline)}" if baseline else "differs from every other system"
    brackets = "Brackets: 95\\% bootstrap intervals. " if has_second else ""
    note = brackets + (
        f"$n = {'$ to $'.join(map(str, sizes if len(sizes) < 3 else (sizes[0], sizes[-1])))}$ items. "
        f"$p$: {against}; the larger of a paired bootstrap and a paired permutation test, two-sided, "
        f"Holm-corrected{' within each metric' if several else ''}. $^*$: {star} ($p < .05$)."
    )
    lines = [
        f"\\begin{{tabular}}{{l{'r' * (columns - 1)}}}",
        "\\toprule",
        " & ".join(head) + " \\\\",
        *subhead,
        "\\midrule",
        *rows,
        "\\bottomrule",
        "\\end{tabular}",
        f"\\par\\smallskip{{\\footnotesize {note}\\par}}",  # in the table, a long note would stretch a column
        *(f"% {one.comparison.signature}" for one in found.values()),
        *(f"% warning: {tables.on_one_line(message)}" for message in warnings),
    ]
    return "\n".join(lines) + "\n"


def _lines(system: str, cells: Sequence[tuple[str, str, str]], has_second: bool) -> Iterator[list[str]]:
    """Yield the cells of the lines of a system: one line, and a second if several metrics have intervals."""
    if len(cells) == 1:
        yield [system, *cells[0]]
        return
    yield [system, *(cell for mean, _, p in cells for cell in (mean, p))]
    if has_second:
        yield ["", *(f"\\multicolumn{{2}}{{r}}{{\\scriptsize {interval}}}" for _, interval, _ in cells)]


def _cells(comparison: Comparison, baseline: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the cells of each system: mean with a star, interval, and p."""
    compared = baseline or max(comparison.systems, key=lambda system: system.mean).name
    against: dict[str, Difference] = {}
    for one in comparison.differences:
        if compared in (one.a, one.b):
            against[one.a if one.b == compared else one.b] = one
    leads = all(one.p < 0.05 for one in against.values())
    for system in comparison.systems:
        own = against.get(system.name)
        starred = own.p < 0.05 if own and baseline else leads and not own and not baseline
        # Dollars make a proper minus sign.
        mean = f"${system.mean:.3f}{'^{*}' if starred else ''}$"
        interval = "--" if isnan(system.low) else f"$[{system.low:.3f}, {system.high:.3f}]$"
        yield mean, interval, f"${format_p_value(own.p)}$" if own else "--"


WRITERS: dict[str, Callable[[Found, Sequence[str], str | None], str]] = {
    "text": as_text,
    "json": as_json,
    "latex": as_latex,
}
