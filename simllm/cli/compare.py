"""`simllm compare`: compare systems, such as summarizers, by their scores, with significance tests."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli import compare_output, report_option, results, shared_options
from simllm.cli.compare_output import Compared
from simllm.cli.report_option import ReportOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, reading, tables
from simllm.io.tables import format_count
from simllm.io.text_pairs import EqualPairs, about_blank_end, is_blank

if TYPE_CHECKING:
    from simllm.array_types import Floats
    from simllm.metric import SimLLM
    from simllm.scoring.scores import Scores

FORMATS = tuple(compare_output.WRITERS)
EXAMPLES = """examples:
  simllm compare -r references.txt -c a.txt b.txt c.txt
  simllm compare -r first.txt second.txt -c a.txt b.txt --over mean -f latex -o table.tex
  simllm compare -r references.txt -c a.txt b.txt --metrics simllm,rouge-l,bleu,chrf --baseline a
  simllm compare --table outputs.csv -r reference -c neural template --metrics simllm,my_module:f1
  simllm compare -r references.txt -c a.txt b.txt --report compared.html
  simllm compare -r references.txt -c a.txt b.txt --metrics judge=judge.toml
"""


@dataclass(frozen=True, kw_only=True)
class Options(ReportOptions):
    """The options of `simllm compare`; references and candidates are columns if there is a table."""

    references: list[Path]
    candidates: list[Path]
    table: Path | None = None
    over: str = "max"
    model: str | None = None
    metrics: str | None = None
    baseline: str | None = None
    sources: Path | None = None


def add_options(compare: argparse.ArgumentParser) -> None:
    """Add the options of `simllm compare` to its parser."""
    compare.add_argument(
        "-r", "--references", nargs="+", type=Path, required=True, metavar="FILE",
        help="references, one per line; several files are several references of each line; "
        "with --table, names of columns",
    )  # fmt: skip
    compare.add_argument(
        "-c", "--candidates", nargs="+", type=Path, required=True, metavar="FILE",
        help="candidates, one per line, a file for each system; with --table, names of columns",
    )  # fmt: skip
    compare.add_argument(
        "--jsonl", "--table", dest="table", type=Path, metavar="FILE",
        help="JSON lines, CSV or TSV with a row for each item; a JSON value may be a list of references",
    )  # fmt: skip
    compare.add_argument("--over", metavar="NAME", help="several references: max or mean")
    compare.add_argument(
        "--metric", "--metrics", dest="metrics", metavar="A,B,…",
        help="metrics for texts, name or name=argument, such as judge=FILE; default: simllm",
    )  # fmt: skip
    compare.add_argument(
        "--baseline", metavar="NAME", help="compare each other system with this one, not all pairs"
    )
    compare.add_argument(
        "--sources", type=Path, metavar="FILE",
        help="for a metric that reads the code: JSON lines with source and language, one for each candidate",
    )  # fmt: skip
    shared_options.add_report_option(compare)


@dataclass(frozen=True)
class _Inputs:
    """The n texts of each system, lists of n references, and the number of blank lines that were dropped."""

    systems: dict[str, Sequence[str]]
    references: list[list[str]]
    dropped: int


@dataclass(frozen=True)
class _Measured:
    """The scores of each system by one metric; `learned` and `scores` only if it is simllm itself."""

    values: dict[str, Floats]
    signature: str
    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    learned: SimLLM | None = None
    scores: dict[str, Scores] = field(default_factory=dict)


def run(options: Options) -> None:
    """Run `simllm compare`: score and compare systems by each metric."""
    output_file.check_output(options.output, options.overwrite)
    report_option.check(options)
    names = _check_metrics(options)
    inputs = _read_files(options) if options.table is None else _read_table(options, options.table)
    if options.baseline is not None and options.baseline not in inputs.systems:
        known = ", ".join(inputs.systems)
        raise InputError(f"--baseline {options.baseline}: expected one of the systems {known}")
    code = _sources(options, len(inputs.references[0]), inputs.dropped)
    about = [about_blank_end(inputs.dropped)] if inputs.dropped else []
    about += _equal_pairs(inputs.systems, inputs.references)
    found: dict[str, Compared] = {}
    of_metrics: dict[str, list[str]] = {}
    for name in names:
        measured, found[name], of_metrics[name] = _compare(options, name, inputs, code)
    about += _shared(of_metrics)
    results.tell(about)
    write = compare_output.WRITERS[options.format or "text"]
    tables.show(write(found, about, options.baseline), options.output)
    if options.report:
        from simllm.analysis.score_report import ScoredPairs

        joined = [" / ".join(several) for several in zip(*inputs.references, strict=True)]
        if measured.learned is None:
            scored = ScoredPairs(joined, inputs.systems, measured.values, signature=measured.signature)
        else:
            columns = report_option.columns_of(measured.scores)
            scored = ScoredPairs(joined, inputs.systems, measured.values, **columns)
        explained: dict[str, SimLLM] = {}
        # The scores of several references are combined, and belong to no single pair of texts.
        if measured.learned is not None and len(inputs.references) == 1:
            explained = dict.fromkeys(inputs.systems, measured.learned)
        comparison = replace(found[names[0]].comparison, warnings=tuple(about))
        report_option.write(options, scored, explained, comparison)


def _check_metrics(options: Options) -> list[str]:
    """Return the names of the metrics, which must be metrics for texts and fit the other options."""
    if options.metrics is None:
        shared_options.refuse(options, ("sources",), "goes with a judge in --metrics")
        return ["simllm"]
    with packages.require_eval_extra():
        from simllm.metrics import registry
    names = list(dict.fromkeys(shared_options.chosen_names(options.metrics, options.model)))
    for name in names:
        if registry.is_code_metric(name) or registry.lower_is_better(name) or name.startswith("column"):
            raise InputError(f"--metrics {name}: expected a metric for texts")
    if any(map(registry.needs_source, names)) != (options.sources is not None):
        raise InputError("--sources FILE goes with a metric in --metrics that reads the code, and only so")
    if options.report and len(names) > 1:
        raise InputError("--report shows one metric; expected one name in --metrics")
    return names


def _read_files(options: Options) -> _Inputs:
    inputs = [*options.candidates, *options.references]
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
    several = [texts[file] for file in options.references]
    rows = [(f"{first}, line {i}", own) for i, own in enumerate(zip(*several, strict=True), 1)]
    return _Inputs(systems, _reference_columns(rows, options.over), dropped)


def _read_table(options: Options, file: Path) -> _Inputs:
    """Read systems and references from the columns of a table."""
    candidates, references = ([*map(str, names)] for names in (options.candidates, options.references))
    for name in candidates:
        if candidates.count(name) > 1:
            raise InputError(f"-c {name}: is named twice")
    texts: dict[str, list[str]] = {name: [] for name in candidates}
    several: list[tuple[str, list[str]]] = []
    for where, row in reading.rows(file, {*candidates, *references}):
        for name, column in texts.items():
            column.append(reading.text_under(row, name, where))
        several.append((where, [text for name in references for text in _references_of(row, name, where)]))
    if not several:
        raise InputError(f"{file}: empty; expected a row for each item")
    columns = _reference_columns(several, options.over)
    dropped = _drop_blank_end([*texts.values(), *columns])
    return _Inputs(dict(texts), columns, dropped)


def _reference_columns(rows: Sequence[tuple[str, Sequence[str]]], over: str) -> list[list[str]]:
    """Return equally long columns of the references of items, each with its place; blank ones do not count.

    An item without any reference keeps its blank ones.
    """
    several: list[list[str]] = []
    for where, texts in rows:
        several.append([text for text in texts if text.strip()] or list(texts))
        if over == "mean" and len(several[-1]) != len(several[0]):
            count = format_count(len(several[-1]), "reference")
            raise InputError(f"{where}: {count}, but {len(several[0])} before; --over mean needs as many")
    most = max(map(len, several))
    # The maximum does not change if a reference is repeated.
    filled = [own + own[-1:] * (most - len(own)) for own in several]
    return [list(column) for column in zip(*filled, strict=True)]


def _references_of(row: dict[str, Any], name: str, where: str) -> list[str]:
    """Return the references of an item under a key: one text, or a list of texts."""
    value = row.get(name)
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return value
    return [reading.text_under(row, name, where)]


def _compare(
    options: Options, name: str, inputs: _Inputs, code: list[tuple[str, str | None]] | None
) -> tuple[_Measured, Compared, list[str]]:
    """Compare the systems by one metric; return the warnings, too."""
    import numpy as np

    from simllm.analysis.comparison import compare_scores

    with results.collected() as messages:
        measured = (
            _by_simllm(options, inputs) if name == "simllm" else _by_metric(options, name, inputs, code)
        )
        corpus = _corpus_bleu(inputs) if name in ("bleu", "bleu-smoothed") else {}
    known = np.isfinite(np.stack(list(measured.values.values()))).all(axis=0).reshape(-1)
    if not known.any():
        raise InputError(f"--metrics {name}: no item has a score for all systems; {'; '.join(messages)}")
    values = {system: own[known] for system, own in measured.values.items()}
    comparison = compare_scores(values, measured.signature, options.baseline)
    lost = int((~known).sum())
    left_out = f"{lost} of {len(known)} items have no score for some system and are left out"
    about = [*([left_out] if lost else []), *messages, *comparison.warnings]
    return measured, Compared(measured.title, comparison, measured.facts, corpus), about


def _by_simllm(options: Options, inputs: _Inputs) -> _Measured:
    from simllm.analysis.comparison import score_systems
    from simllm.metric import SimLLM

    learned = SimLLM(options.model)
    scores = score_systems(learned, inputs.systems, inputs.references, options.over)
    values = {name: own.values for name, own in scores.items()}
    signature = next(iter(scores.values())).signature
    return _Measured(values, signature, "SIMLLM", learned=learned, scores=scores)


def _by_metric(
    options: Options, name: str, inputs: _Inputs, code: list[tuple[str, str | None]] | None
) -> _Measured:
    """Score the systems by a metric of the registry, or by the wins that a pair-wise judge gives them."""
    import numpy as np

    from simllm.analysis.comparison import make_examples, score_systems_by
    from simllm.metrics import registry
    from simllm.metrics.interface import UnavailableError
    from simllm.metrics.text.readable_texts import ALMOST_ZERO

    systems, references = inputs.systems, inputs.references
    judge = registry.pairwise_judge(name)
    if judge is not None:
        if len(references) > 1:
            raise InputError(f"--metrics {name}: a pair-wise judge takes one file of references")
        wins = judge.compare(
            {system: make_examples(texts, references[0], code) for system, texts in systems.items()}
        )
        facts = {**wins.facts, "orders disagree": wins.disagreeing, "first text named": wins.first}
        return _Measured(wins.values, wins.signature, "wins", facts)
    try:
        metric = registry.load(name, options.model)
    except UnavailableError as error:
        raise InputError(f"metric {name}: {error}") from None
    values, scores = score_systems_by(metric, systems, references, options.over, code)
    # nltk's tiny numbers mean 0, and must not count as wins over smaller ones.
    values = {system: np.where(np.abs(own) < ALMOST_ZERO, 0.0, own) for system, own in values.items()}
    several = f"|references:{len(references)}|over:{options.over}" if len(references) > 1 else ""
    return _Measured(values, scores.signature + several, name, dict(getattr(scores, "facts", {})))


def _corpus_bleu(inputs: _Inputs) -> dict[str, float]:
    from simllm.metrics.text.words import corpus_bleu

    with packages.require_eval_extra():
        return {name: corpus_bleu(texts, inputs.references) for name, texts in inputs.systems.items()}


def _shared(of_metrics: dict[str, list[str]]) -> list[str]:
    """Join the warnings of several metrics; the name of its metric begins one that not all have."""
    if len(of_metrics) == 1:
        return next(iter(of_metrics.values()))
    return list(
        dict.fromkeys(
            message
            if all(message in own for own in of_metrics.values()) or message.startswith(f"{name}: ")
            else f"{name}: {message}"
            for name, messages in of_metrics.items()
            for message in messages
        )
    )


def _sources(options: Options, n: int, dropped: int) -> list[tuple[str, str | None]] | None:
    """Read the code that line i of the candidates describes, and its language, if known, for each i.

    Return None without a file.
    """
    if options.sources is None:
        return None
    found = [
        (reading.text_under(row, "source", where), reading.language_of(row, where))
        for where, row in reading.objects(options.sources)
    ]
    if len(found) not in (n, n + dropped):
        count = format_count(len(found), "line")
        raise InputError(f"{options.sources} has {count}, but the candidates have {n:,}")
    return found[:n]


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
