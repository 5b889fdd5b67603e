"""`simllm compare`: compare systems, such as summarizers, by their scores, with significance tests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli import report_option, results, shared_options
from simllm.cli.report_option import ReportOptions
from simllm.errors import InputError
from simllm.io import output_file, reading, tables
from simllm.io.tables import format_count
from simllm.io.text_pairs import EqualPairs, about_blank_end, is_blank

if TYPE_CHECKING:
    from simllm.analysis.comparison import Comparison

FORMATS = ("text", "json", "latex")
EXAMPLES = """examples:
  simllm compare -r references.txt -c a.txt b.txt c.txt
  simllm compare -r first.txt second.txt -c a.txt b.txt --over mean -f latex -o table.tex
  simllm compare -r references.txt -c a.txt b.txt --report compared.html
  simllm compare -r references.txt -c a.txt b.txt --metric judge=judge.toml
"""


@dataclass(frozen=True, kw_only=True)
class Options(ReportOptions):
    """The options of `simllm compare`."""

    references: list[Path]
    candidates: list[Path]
    over: str = "max"
    model: str | None = None
    metric: str | None = None
    sources: Path | None = None


def add_options(compare: argparse.ArgumentParser) -> None:
    """Add the options of `simllm compare` to its parser."""
    compare.add_argument(
        "-r", "--references", nargs="+", type=Path, required=True, metavar="FILE",
        help="references, one per line; several files are several references of each line",
    )  # fmt: skip
    compare.add_argument(
        "-c", "--candidates", nargs="+", type=Path, required=True, metavar="FILE",
        help="candidates, one per line, a file for each system",
    )  # fmt: skip
    compare.add_argument("--over", metavar="NAME", help="several references: max or mean")
    compare.add_argument(
        "--metric", metavar="NAME",
        help="a metric of the registry, name or name=argument, such as judge=FILE; default: simllm",
    )  # fmt: skip
    compare.add_argument(
        "--sources", type=Path, metavar="FILE",
        help="for a judge that reads the code: JSON lines with source, one for each line of candidates",
    )  # fmt: skip
    report_option.add_option(compare)


def run(options: Options) -> None:
    """Run `simllm compare`: score and compare systems."""
    inputs = [*options.candidates, *options.references]
    output_file.check_output(options.output, options.overwrite)
    report_option.check(options)
    # A second reader of standard input would get nothing.
    if sum(map(reading.is_stdin, inputs)) > 1:
        raise InputError("-: standard input can be one of the files only")
    output_file.check_different(options.candidates)
    texts = {file: [line for _, line in reading.read_lines(file)] for file in inputs}
    first = options.references[0]
    for file, lines in texts.items():
        if len(lines) != len(texts[first]):
            count = format_count(len(lines), "line")
            raise InputError(f"{file} has {count} but {first} has {len(texts[first]):,}")
    # A pair of empty texts has a perfect score, so that blank lines at the end would lift all means.
    dropped = _drop_blank_end(list(texts.values()))
    names = [file.stem for file in options.candidates]
    if len(set(names)) != len(names):  # files with the same name in different folders
        names = [str(file) for file in options.candidates]
    systems: dict[str, Sequence[str]] = {
        name: texts[file] for name, file in zip(names, options.candidates, strict=True)
    }
    references = [texts[file] for file in options.references]
    if options.metric is not None:
        _compare_by_metric(options, systems, references, dropped)
        return
    shared_options.refuse(options, ("sources",), "goes with a judge in --metric")
    from simllm.analysis.comparison import compare_scores, score_systems
    from simllm.metric import SimLLM

    metric = SimLLM(options.model)
    with results.collected() as messages:
        scores = score_systems(metric, systems, references, options.over)
    values = {name: own.values for name, own in scores.items()}
    comparison = compare_scores(values, scores[names[0]].signature)
    about = [about_blank_end(dropped)] if dropped else []
    about += [*_equal_pairs(systems, references), *messages, *comparison.warnings]
    results.tell(about)
    comparison = replace(comparison, warnings=tuple(about))
    _show(options, comparison, "SIMLLM", {})
    if options.report:
        from simllm.analysis.score_report import ScoredPairs

        joined = [" / ".join(several) for several in zip(*references, strict=True)]
        scored = ScoredPairs(joined, systems, values, **report_option.columns_of(scores))
        # The scores of several references are combined, and belong to no single pair of texts.
        explained = systems if len(references) == 1 else ()  # no words for several joined references
        report_option.write(options, scored, dict.fromkeys(explained, metric), comparison)


def _compare_by_metric(
    options: Options, systems: dict[str, Sequence[str]], references: list[list[str]], dropped: int
) -> None:
    """Compare systems by another metric, or by the wins that a pair-wise judge gives them."""
    import numpy as np

    from simllm.analysis.comparison import compare_scores, score_systems_by
    from simllm.metrics import registry
    from simllm.metrics.interface import Example

    name = options.metric or ""
    registry.check_names([name])
    if registry.is_code_metric(name) or registry.lower_is_better(name) or name.startswith("column"):
        raise InputError(f"--metric {name}: expected a metric for texts")
    if options.model and not registry.uses_model(name):
        raise InputError("--model goes with simllm or simllm-same in --metric")
    if registry.needs_source(name) != (options.sources is not None):
        raise InputError("--sources FILE goes with a judge in --metric that reads the code, and only with it")
    code = _sources(options, len(references[0]), dropped)
    judge = registry.pairwise_judge(name)
    with results.collected() as messages:
        if judge is not None:
            if len(references) > 1:
                raise InputError(f"--metric {name}: a pair-wise judge takes one file of references")
            lines: Sequence[str | None] = code or [None] * len(references[0])
            wins = judge.compare(
                {system: list(map(Example, texts, references[0], lines)) for system, texts in systems.items()}
            )
            values, signature = wins.values, wins.signature
            facts = {**wins.facts, "orders disagree": wins.disagreeing, "first text named": wins.first}
        else:
            metric = registry.load(name, options.model)
            values, scores = score_systems_by(metric, systems, references, options.over, code)
            signature, facts = scores.signature, dict(getattr(scores, "facts", {}))
            if len(references) > 1:
                signature += f"|references:{len(references)}|over:{options.over}"
    known = ~np.isnan(np.stack(list(values.values()))).any(axis=0)
    if not known.any():
        raise InputError(f"--metric {name}: no item has a score for all systems; {'; '.join(messages)}")
    comparison = compare_scores({system: own[known] for system, own in values.items()}, signature)
    about = [about_blank_end(dropped)] if dropped else []
    if lost := int((~known).sum()):
        about.append(f"{lost} of {len(known)} items have no score for some system and are left out")
    about += [*_equal_pairs(systems, references), *messages, *comparison.warnings]
    results.tell(about)
    comparison = replace(comparison, warnings=tuple(about))
    _show(options, comparison, "wins" if judge is not None else name, facts)
    if options.report:
        from simllm.analysis.score_report import ScoredPairs

        joined = [" / ".join(several) for several in zip(*references, strict=True)]
        scored = ScoredPairs(joined, systems, values, signature=signature)
        report_option.write(options, scored, {}, comparison)


def _sources(options: Options, n: int, dropped: int) -> list[str] | None:
    """Read the code that line i of the candidates describes, for each i; None without a file."""
    if options.sources is None:
        return None
    found = [reading.text_under(row, "source", where) for where, row in reading.objects(options.sources)]
    if len(found) not in (n, n + dropped):
        count = format_count(len(found), "line")
        raise InputError(f"{options.sources} has {count}, but the candidates have {n:,}")
    return found[:n]


def _show(options: Options, comparison: Comparison, name: str, facts: dict[str, Any]) -> None:
    """Write a comparison by a metric; `facts` are about the requests of a judge."""
    write = {"text": _text, "json": _json, "latex": _latex}[options.format or "text"]
    tables.show(write(comparison, name, facts), options.output)


def _drop_blank_end(columns: Sequence[list[str]]) -> int:
    """Remove the last lines of several files as long as they are blank in all files; return their number."""
    kept = length = len(columns[0])
    while kept and is_blank(column[kept - 1] for column in columns):
        kept -= 1
    if length and not kept:
        raise InputError("all lines of all files are blank")
    for column in columns:
        del column[kept:]
    return length - kept


def _equal_pairs(systems: dict[str, Sequence[str]], references: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a warning for each system most of whose texts are equal to their references."""
    for name, texts in systems.items():
        equal = EqualPairs()
        for column in references:
            equal.count(zip(texts, column, strict=True))
        yield from (f"{name}: {message}" for message in equal.warnings())


def _json(comparison: Comparison, _name: str, facts: dict[str, Any]) -> str:
    # json knows no arrays of numpy.
    values = {**asdict(comparison), "wins": comparison.wins.tolist()}
    values |= {"judge": facts} if facts else {}
    return json.dumps(tables.finite(values), indent=2) + "\n"


def _text(comparison: Comparison, _name: str, facts: dict[str, Any]) -> str:
    """Format a comparison as three tables: means, differences of pairs, and wins of row over column."""
    names = [system.name for system in comparison.systems]
    parts = [
        (
            ("system", "mean", "95% low", "high"),
            [tuple(asdict(system).values()) for system in comparison.systems],
        ),
        (
            ("a", "b", "difference", "95% low", "high", "bootstrap p", "permutation p"),
            [tuple(asdict(difference).values()) for difference in comparison.differences],
        ),
        (
            ("wins over", *names),
            [(name, *row) for name, row in zip(names, comparison.wins.tolist(), strict=True)],
        ),
    ]
    shown = []
    for columns, rows in parts:
        widths = tables.widths([columns, *rows])
        shown.append(tables.header(columns, widths) + tables.lines(rows, widths))
    summary = {"items": comparison.n, "p": "two-sided, Holm-corrected", "signature": comparison.signature}
    summary |= facts
    summary |= {"warnings": list(comparison.warnings)} if comparison.warnings else {}
    return "\n".join(shown) + tables.footer(summary)


def _latex(comparison: Comparison, name: str, _facts: dict[str, Any]) -> str:
    """Format means and intervals as a LaTeX table, with a star at a system that beats all others."""
    # LaTeX needs the packages booktabs, and dollars around numbers for a proper minus sign.
    best = max(comparison.systems, key=lambda system: system.mean)
    # Both tests must agree, which is stricter than either.
    own = [d for d in comparison.differences if best.name in (d.a, d.b)]
    star = "*" if all(max(d.bootstrap_p, d.permutation_p) < 0.05 for d in own) else ""
    rows = [
        f"{tables.escape_latex(s.name)} & ${s.mean:.3f}{'^{' + star + '}' if star and s is best else ''}$ "
        f"& {'--' if isnan(s.low) else f'$[{s.low:.3f}, {s.high:.3f}]$'} \\\\"
        for s in comparison.systems
    ]
    head = [
        "\\begin{tabular}{lrr}",
        "\\toprule",
        f"System & {tables.escape_latex(name)} & 95\\% interval \\\\",
        "\\midrule",
    ]
    note = f"% n = {comparison.n}; *: p < 0.05 against every other (paired, Holm); {comparison.signature}"
    notes = [note, *(f"% warning: {tables.on_one_line(message)}" for message in comparison.warnings)]
    return "\n".join([*head, *rows, "\\bottomrule", "\\end{tabular}", *notes]) + "\n"
