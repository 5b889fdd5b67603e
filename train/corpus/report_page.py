"""The report about a corpus as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from train.corpus import report_charts

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h2 { margin: 2.2rem 0 .4rem; font-size: 1.15rem } h3 { margin: 1.2rem 0 .2rem; font-size: 1rem }
table { border-collapse: collapse; margin: .5rem 0 } p { margin: .3rem 0 }
td, th { padding: .15rem .7rem .15rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #e4e4e4; overflow-wrap: anywhere }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.more { color: #777; font-size: .85em } summary { cursor: pointer } svg { margin-right: 2rem }
svg text { font-size: 11px; fill: #666 }
"""

_NOT_LEFT_OUT = {"files": ("read", "bytes"), "comments": (), "texts": ("read", "train", "test")}


def page(facts: dict[str, Any]) -> str:
    """Render the page from the content of `report.json`."""
    texts, files = (facts["found"][name]["counts"] for name in ("texts", "files"))
    languages, growth = sorted(facts["languages"]), facts["vocabulary"]
    read = f"{files.get('read', 0):,} files of code ({files.get('bytes', 0) / 1e6:,.1f} MB)"
    sources = facts["sources"].items()
    pairs = facts["pairs"]
    body = [
        "<h1>Corpus</h1>",
        f"<p>{texts['train']:,} training texts and {texts['test']:,} held-out texts, "
        f"from {texts['read']:,} texts that were read; {read}.</p>",
        "<h2>Languages</h2>",
        _table(
            ["", "comments", "texts", "words"],
            [[name, *_sizes(facts["languages"][name])] for name in languages],
        ),
        "<h2>Sources</h2>",
        _table(
            ["", "comments", "texts", "words", *(f"{name}" for name in languages)],
            [
                [name, *_sizes(row), *(row.get(language, 0) for language in languages)]
                for name, row in sources
            ],
        ),
        "<h3>Largest repositories, comments</h3>",
        _table(["", "comments"], facts["repositories"].items()),
        "<h2>Left out</h2>",
        *(f"<h3>{name.capitalize()}</h3>" + _left_out(name, tally) for name, tally in facts["found"].items()),
        "<h2>Words per text</h2>",
        *(report_charts.bars(kind, lengths) for kind, lengths in facts["lengths"].items() if lengths),
        "<h2>Different words over texts</h2>",
        report_charts.logarithmic("{1:,} in {0:,}".format(*growth[-1]), growth),
        "<h2>Near duplicates</h2><p>Texts that were left out, and the texts that they repeat; a sample.</p>",
        _table(["left out", "kept"], facts["near_duplicates"]),
        "<h2>Pairs</h2>",
        _table(["", "pairs"], pairs["counts"].items()),
        *(f"<h3>{escape(kind)}</h3>" + _table(["", ""], some) for kind, some in pairs["examples"].items()),
        "<h2>Random samples</h2>",
        *(f"<h3>{escape(name)}</h3>" + _samples(facts["samples"][name]) for name in languages),
    ]
    return (
        "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Corpus</title>\n"
        f"<style>{_STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    )


def _left_out(stage: str, tally: dict[str, Any]) -> str:
    """Return a table of the kinds of things that were left out in a stage, with examples."""
    counts = {kind: n for kind, n in tally["counts"].items() if n and kind not in _NOT_LEFT_OUT[stage]}
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    rows = [[kind, counts[kind], _Examples(tally["examples"].get(kind, []))] for kind in kinds]
    return _table(["", "", "for example"], rows) if rows else "<p>None.</p>"


class _Examples(list[str]):
    """Texts in one cell: the first is shown, the others after a click."""


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["<table>"]
    rows = [list(row) for row in rows]
    if any(head):
        numbers = [any(isinstance(row[i], int) for row in rows) for i in range(len(head))]
        cells = (f"<th{' class=n' * n}>{escape(name)}</th>" for name, n in zip(head, numbers, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"<td class=n>{value:,}</td>"
    if isinstance(value, _Examples):
        first, *others = (escape(text[:200]) for text in (value or [""]))
        hidden = "".join(f"<p>{text}</p>" for text in others)
        more = f"<details><summary>{first}</summary>{hidden}</details>" if others else first
        return f"<td class=more>{more}</td>"
    return f"<td>{escape(str(value)[:300])}</td>"


def _samples(samples: list[list[str]]) -> str:
    rows = (f"<p>{escape(text[:300])} <span class=more>{escape(where)}</span></p>" for text, where in samples)
    return "".join(rows)


def _sizes(counts: dict[str, int]) -> list[int]:
    return [counts.get(key, 0) for key in ("comments", "texts", "words")]
