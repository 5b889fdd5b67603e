"""The HTML report of runs: a main page, and a page for each item."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from simllm.analysis.comparison import about_few_items
from simllm.errors import InputError
from simllm.io import output_file, tables
from simllm.io.html_page import render
from simllm.io.output_folder import OutputFolder
from simllm.io.svg_figure import BLUE, GREY, INK, Figure, style, svg_element
from simllm.io.tables import escape_latex, format_number, format_p_value, label, latex_table
from simllm.repair.analysis import Analysis, analyse
from simllm.repair.items import RepairItem
from simllm.repair.results import RESULTS, RPSR, AttemptResult, read_results
from simllm.repair.settings import RunSettings, read_run_items, read_settings
from simllm.repair.summary import SUMMARY, compare_runs, read_summary

PAGE, TABLES = "report.html", "tables.tex"
_FIGURES = "report.json"
_CONTENT = "a report on repair runs"
_COLORS = (BLUE, INK, GREY)
_LINES = ("-", "--", ":", "-.")
_MOST_IN_LEGEND = 44  # characters of a run's name
_MOST_IN_CELL = 4000  # characters of one input or output on a page
_MOST_IN_TEXT = 50_000  # characters of one message, reply or program on a page
_MOST_LINES, _MOST_IN_LINE = 2000, 1000  # lines of a difference on a page, and their characters


@dataclass(frozen=True)
class ReportedRun:
    """A run with all data for the report.

    Attributes:
        name: The run's name in the report, made of its model and its strategy; unique in the report.
        summary: The content of `summary.json`.
    """

    name: str
    settings: RunSettings
    summary: dict[str, Any]
    items: list[RepairItem]
    attempts: list[AttemptResult]

    @cached_property
    def analysis(self) -> Analysis:
        """Lengths of programs, tokens by kind of prompt, and hunks."""
        return analyse(self.items, self.attempts)


def write(runs: Sequence[Path], folder: Path, rpsr: str = "mean") -> list[str]:
    """Write the report of runs with the same items: `report.html`, `report.json`, and a page for each item.

    An earlier report is replaced, but files that simllm did not write are kept. `rpsr` is the definition of
    RPSR: "mean" (over accepted attempts) or "published" (as in the code of CREF, which counts failed
    attempts, too).

    Returns what makes the comparison of the runs mean little, such as too few items.
    """
    output_file.check_different(runs)
    OutputFolder(folder, _CONTENT).check_replaceable((PAGE, _FIGURES, TABLES))
    OutputFolder(folder).check_apart(runs)
    found = read_runs(runs)
    _check_items(found)
    try:
        return _write(found, folder, rpsr)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UndefinedError) as error:
        # The content of the files was not checked against each other.
        names = ", ".join(map(str, runs))
        raise InputError(f"{names}: {SUMMARY} and {RESULTS} do not fit together ({error!r})"[:500]) from error


def _write(found: Sequence[ReportedRun], folder: Path, rpsr: str) -> list[str]:
    comparisons = compare_runs({run.name: run.attempts for run in found})
    trees = sorted({run.settings.trees for run in found if not run.settings.judge})
    if len(trees) > 1:
        comparisons.pop("RPSR", None)
    warnings = about_few_items(comparisons)
    if len(trees) > 1:
        warnings.append(f"runs with trees of {' and '.join(trees)}: their RPS and RPSR cannot be compared")
    for run in found:
        if run.analysis.lengths and (warning := run.analysis.lengths.warning):
            warnings.append(f"{run.name}: {warning}")
    # Numbers, because an id may have characters that a file name cannot have.
    pages = {item.id: f"items/{number:04}.html" for number, item in enumerate(found[0].items, 1)}
    figures = {
        "runs": {run.name: run.summary for run in found},
        "analyses": {run.name: run.analysis.numbers for run in found},
        "comparisons": {
            name: {"items": one.n, "differences": [asdict(difference) for difference in one.differences]}
            for name, one in comparisons.items()
        },
        **({"warnings": warnings} if warnings else {}),
    }
    attempts = {run.name: _by_item(run.attempts) for run in found}
    with OutputFolder(folder, _CONTENT).replacing() as partial_folder:
        output_file.write(partial_folder / _FIGURES, json.dumps(tables.finite(figures), indent=1) + "\n")
        page = _render(
            "repair_report.html",
            runs=found,
            rpsr=RPSR[rpsr],
            tops=max((list(run.summary["figures"]["TOP"]) for run in found), key=len),
            comparisons=comparisons,
            warnings=warnings,
            figure=draw_rounds(found),
            rows=[_row(item, pages[item.id], found, attempts) for item in found[0].items],
            probability=format_p_value,
            number=format_number,
        )
        output_file.write(partial_folder / PAGE, page)
        output_file.write(partial_folder / TABLES, "\n".join(_latex_tables(found, rpsr)))
        (partial_folder / "items").mkdir()
        for item in found[0].items:
            own = {name: by_item.get(item.id, []) for name, by_item in attempts.items()}
            output_file.write(partial_folder / pages[item.id], item_page(item, own))
    return warnings


def read_runs(runs: Sequence[Path]) -> list[ReportedRun]:
    """Read the folders of runs, and give each run a name.

    A name such as "M, cref" has the model and the strategy. If several runs would have the same name, the
    names of their folders are added, as in "M, cref (run2)".
    """
    settings = [read_settings(run) for run in runs]
    # Names are keys, so they must differ. Folders in different places may have the same name; then a number
    # helps.
    count = Counter(one.label for one in settings)
    found: dict[str, ReportedRun] = {}
    for number, (run, one) in enumerate(zip(runs, settings, strict=True), 1):
        name = label(one.label) if count[one.label] == 1 else label(f"{one.label} ({run.resolve().name})")
        name = f"{name} {number}" if name in found else name
        found[name] = ReportedRun(name, one, read_summary(run), read_run_items(run, one), read_results(run))
    return list(found.values())


def _check_items(runs: Sequence[ReportedRun]) -> None:
    """Check that items with the same id are equal in all runs."""
    known = {item.id: item for item in runs[0].items}
    for run in runs:
        for item in run.items:
            if known.get(item.id, item) != item:
                names = f"{runs[0].name!r} and {run.name!r}"
                raise InputError(f"runs {names} have different items under the id {item.id[:40]!r}")


def item_page(item: RepairItem, attempts: Mapping[str, Sequence[AttemptResult]]) -> str:
    """Render the page of an item with the model's replies in its attempts, which are given by name of run."""
    return _render(
        "repair_item.html",
        item=item,
        attempts=attempts,
        diff=partial(_diff, item.code),
        cut=partial(_cut, most=_MOST_IN_TEXT),
        cut_cell=partial(_cut, most=_MOST_IN_CELL),
    )


def _render(template: str, **values: Any) -> str:
    return render(Path(__file__).with_name(template), cell=_cell, label=label, **values)


def _diff(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a unified diff, each with its kind: "-", "+", " " (unchanged) or "@" (line numbers,
    or "…" where the diff is cut).
    """
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    for number, line in enumerate(lines):
        if number > _MOST_LINES:
            yield "@", "…"
            return
        if number > 1:  # the first two lines have the names of files
            yield line[0], _cut(line, _MOST_IN_LINE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + f"… ({len(text):,} characters)"


def _latex_tables(runs: Sequence[ReportedRun], rpsr: str) -> list[str]:
    """Return LaTeX tables: the figures, AVG by tier, code length, tokens by kind of prompt, and hunks."""
    tops = max((list(run.summary["figures"]["TOP"]) for run in runs), key=len)
    name = RPSR[rpsr]

    def rows(each: Callable[[ReportedRun], Iterable[Sequence[Any]]]) -> list[list[str]]:
        """Make rows from those of each run, which stands in the first column once."""
        return [
            [escape_latex(run.name) if number == 0 else "", *map(_latex_cell, row)]
            for run in runs
            for number, row in enumerate(each(run))
        ]

    def main(run: ReportedRun) -> Iterable[Sequence[Any]]:
        found = run.summary["figures"]
        yield [found["items"], found["AVG"], *(found["TOP"].get(k) for k in tops), found["RPS"], found[name]]

    header = ["Run", "Items", "AVG", *(f"TOP-{k}" for k in tops), "RPS", escape_latex(name)]
    made = [latex_table("Repaired programs.", "repair", header, rows(main))]
    if tiers := list(dict.fromkeys(tier for run in runs for tier in run.summary.get("tiers", {}))):
        averages = [
            [
                escape_latex(run.name),
                *(_latex_cell(run.summary["tiers"].get(tier, {}).get("AVG")) for tier in tiers),
            ]
            for run in runs
        ]
        made.append(latex_table("AVG by tier.", "repair-tiers", ["Run", *map(escape_latex, tiers)], averages))

    def lengths(run: ReportedRun) -> Iterable[Sequence[Any]]:
        if one := run.analysis.lengths:
            yield [
                one.repaired,
                one.repaired_median,
                one.others,
                one.others_median,
                one.u,
                format_p_value(one.p),
            ]

    header = ["Run", "Repaired", "Lines", "Others", "Lines", "U", "p"]
    caption = "Median length of the incorrect programs, and Mann and Whitney's test."
    made.append(latex_table(caption, "repair-lengths", header, rows(lengths)))
    header = ["Run", "Prompt adds", "Requests", "Accepted", "Prompt tokens", "Reply tokens"]
    kinds = rows(lambda run: [list(vars(one).values()) for one in run.analysis.prompts])
    caption = "Mean tokens by kind of prompt; a prompt has the conversation before."
    made.append(latex_table(caption, "repair-prompts", header, kinds, "llrrrr"))
    header = ["Run", "Hunks of the fix", "Items", "AVG", "Hunks of patches"]
    hunks = rows(lambda run: [list(vars(one).values()) for one in run.analysis.hunks])
    made.append(latex_table("AVG by hunks of the fix.", "repair-hunks", header, hunks, "llrrr"))
    return ["% \\usepackage{booktabs}\n", *made]


def _latex_cell(value: float | str | None) -> str:
    return "--" if value is None or value != value else escape_latex(_cell(value))


def _by_item(attempts: Sequence[AttemptResult]) -> dict[str, list[AttemptResult]]:
    found: dict[str, list[AttemptResult]] = {}
    for attempt in attempts:
        found.setdefault(attempt.item, []).append(attempt)
    return found


def _row(
    item: RepairItem,
    page: str,
    runs: Sequence[ReportedRun],
    attempts: Mapping[str, Mapping[str, Sequence[AttemptResult]]],
) -> dict[str, Any]:
    """Return the data of an item's row on the main page.

    `attempts` is indexed by name of run and id of item. `marks` in the result has a text for each run, such
    as "WA AC AC" for three attempts.
    """
    marks = []
    for run in runs:
        own = attempts[run.name].get(item.id, [])
        marks.append(" ".join(_mark(attempt) for attempt in own))
    return {"id": item.id, "page": page, "group": item.group, "marks": marks}


def _mark(attempt: AttemptResult) -> str:
    """Return an attempt's outcome: the last verdict or score, "open", or "none" if no model was asked."""
    if attempt.open is not None:
        return "open"
    last = attempt.rounds[-1] if attempt.rounds else None
    if last is None:
        return "none"
    return last.verdict or ("no score" if last.score is None else f"{last.score:.2f}")


def _cell(value: float | str | None) -> str:
    """Format the value of a table cell: numbers with up to three decimals, None as "n/a", texts unchanged."""
    if value is None:
        return "n/a"
    return value if isinstance(value, str) else f"{value:,.3f}".rstrip("0").rstrip(".")


def _legend(name: str) -> str:
    """Shorten the name of a run in the middle, since runs of the same model differ at the end."""
    return name if len(name) <= _MOST_IN_LEGEND else name[:15] + "…" + name[16 - _MOST_IN_LEGEND :]


def draw_rounds(runs: Sequence[ReportedRun]) -> str:
    """Plot the share of attempts that were accepted up to each round, as an SVG element with a line for each
    run.
    """
    with style():
        figure = Figure(figsize=(7, 2.6))
        axes = figure.subplots()
        most = 1
        for number, run in enumerate(runs):
            rows = [row for row in run.summary["figures"]["rounds"] if row["share by then"] is not None]
            rounds = [row["round"] for row in rows]
            most = max([most, *rounds])
            axes.plot(
                rounds, [row["share by then"] for row in rows], _LINES[number % len(_LINES)], marker="o",
                linewidth=max(1, 4 - number), markersize=max(3, 8 - 2 * number),  # equal lines stay visible
                color=_COLORS[number % len(_COLORS)], label=_legend(run.name),
            )  # fmt: skip
        axes.set_ylim(0, 1.05)
        axes.set_xticks(range(1, most + 1))
        axes.set_xlim(0.8, most + 0.2)
        axes.set_xlabel("round")
        axes.set_ylabel("accepted by then")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()
    return svg_element(figure)
