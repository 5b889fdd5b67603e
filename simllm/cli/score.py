"""`simllm score`: score any number of text pairs (candidate, reference) in constant memory."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from simllm.cli import (
    report_option,
    results,
    score_by_metrics,
    score_cascade,
    shared_options,
)
from simllm.cli.report_option import Groups
from simllm.cli.score_options import Options as Options
from simllm.cli.score_options import add_options as add_options
from simllm.errors import InputError
from simllm.io import output_file, partial_file, tables
from simllm.io.output_file import locked
from simllm.io.partial_file import PartialFile
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import format_count
from simllm.io.text_pairs import EqualPairs, PairSource, PairWithId, from_files, from_rows
from simllm.text_cleaning import encodable

if TYPE_CHECKING:
    from simllm.metric import SimLLM
    from simllm.scoring.scores import Scores
    from simllm.scoring.table import Chunk, ScoreTable
    from simllm.scoring.token_matching import Frequencies

EXAMPLES = """examples:
  simllm score "adds two lists" "combines 2 arrays"
  simllm score -c candidates.txt -r references.txt -f tsv -o scores.tsv
  simllm score --jsonl pairs.jsonl --candidate-field pred --reference-field gold --id-field key
  simllm score --table study.csv --candidate-field model --reference-field human
  zcat pairs.jsonl.gz | simllm score --jsonl - --mode fast --scale percentile
  simllm score -c candidates.txt -r references.txt --metrics simllm,rouge-l
  simllm score --jsonl items.jsonl --against code
  simllm score --jsonl pairs.jsonl --report report.html --group-by language
  simllm score --jsonl pairs.jsonl --judge judge.toml --judge-below .2:.8
  simllm score --jsonl 'shards/*.jsonl.gz' -o scores/ --engine ray --address auto
  simllm score -f json -- "--all lists everything" "lists everything"
"""


def run(options: Options) -> None:
    """Run `simllm score`: read text pairs, score them and write a table."""
    # A pattern is not expanded by the shell if it is in quotes; many files would not fit a command line.
    several = _matching_files(options.jsonl)
    options.check(has_several_files=bool(several))
    if several:
        _score_files(options, several)
        return
    reads_code = options.against not in (None, "reference")
    source = None if reads_code else _choose_source(options)
    output_file.check_output(options.output, options.overwrite or options.resume)
    report_option.check(options)
    groups = report_option.read_groups(options)
    if source is None:
        from simllm.cli import score_against

        score_against.run(options, groups)
    elif options.judge is not None:
        score_cascade.run(options, source)
    elif options.metrics is None:
        _score(options, source, groups)
    else:
        score_by_metrics.run(options, source, groups)


def _matching_files(pattern: Path | None) -> list[Path]:
    """Find the files that the value of `--jsonl` matches, sorted; none if the value is not a glob pattern."""
    # A file may be called "a[1].jsonl".
    if pattern is None or pattern.exists() or not glob.has_magic(str(pattern)):
        return []
    matches = sorted(map(Path, glob.glob(str(pattern), recursive=True)))  # noqa: PTH207 (also absolute patterns)
    found = [path for path in matches if not path.is_dir()]
    if not found:
        raise InputError(f"{pattern}: no file matches")
    return found


def _choose_source(options: Options) -> PairSource:
    """Return the source of the pairs: the command line, two text files, or a file with a row for each."""
    two_files = options.candidates is not None or options.references is not None
    if sum([bool(options.texts), two_files, options.jsonl is not None]) != 1:
        raise InputError("expected either two texts, or -c FILE -r FILE, or --jsonl FILE (--table FILE)")
    if (file := options.jsonl) is not None:
        fields = (options.candidate_field, options.reference_field, options.id_field)
        return PairSource(lambda: from_rows(file, *fields), (file,))
    if two_files:
        if options.candidates is None or options.references is None:
            raise InputError("-c and -r go together: a file of candidates, a file of references")
        both = options.candidates, options.references
        if str(both[0]) == str(both[1]) == "-":
            raise InputError("-c - and -r -: standard input can be one of them only")
        messages: list[str] = []
        return PairSource(lambda: from_files(*both, messages), both, messages)
    # Probably a file whose option was forgotten: a path has a score like any text.
    if len(options.texts) == 1 and all(map(os.path.isfile, options.texts)):
        ways = "--jsonl FILE, --table FILE, or -c FILE -r FILE"
        raise InputError(f"{options.texts[0]}: to read pairs from files, use {ways}")
    if len(options.texts) != 2:
        raise InputError(f"expected two texts, a candidate and a reference; got {len(options.texts)}")
    if all(map(os.path.isfile, options.texts)):
        message = "both texts are names of files, and the names themselves are scored; -c and -r read files"
        warnings.warn(message, stacklevel=2)
    pair = PairWithId(*map(encodable, options.texts))
    return PairSource(lambda: iter([pair]), ())


def _score(options: Options, source: PairSource, groups: Groups) -> None:
    """Score the pairs by the learned metric, and write a table."""
    # A file is written when all pairs are scored. Standard output, pipes and devices get each pair at once.
    output = options.output
    target = output_file.real(output) if output and (output.is_file() or not output.exists()) else None
    if target:
        output_file.check_output(partial_file.path_of(target), overwrite=True)
        if options.resume and not options.overwrite:
            _refuse_finished_run(target)
    # Standard output holds nothing that could be continued.
    elif options.resume:
        raise InputError("--resume goes with -o FILE")
    total = sum(1 for _ in source.rows()) if source.repeatable else None  # this also checks the input
    # Not before the input is known to be good: torch is slow.
    from simllm.metric import SimLLM
    from simllm.scoring.table import ScoreTable

    metric = SimLLM(
        options.model,
        pooling=options.pooling,
        similarity=options.similarity,
        mode=options.mode,
        device=options.device,
        on_long=options.on_long,
        long=options.long,
        frequencies=_frequencies(options.frequencies),
        prior=options.prior,
    )
    form = tables.format_for(options.format, options.output)
    table = ScoreTable(options.shown_scale, form, options.id_field is not None, metric.no_scores)
    if metric.by_token and metric.frequencies is None and source.repeatable:
        metric.frequencies = metric.count_frequencies(row.reference for row in source.rows())
    # The report shows all pairs, which then do not fit into constant memory.
    pairs = list(source.rows()) if options.report else []
    rows = iter(pairs) if options.report else source.rows()  # standard input can be read once only
    if target:
        scores = _write_resumably(options, table, metric, rows, total, source.messages, target)
    else:
        chunks = _with_bar(options, metric.stream(rows), total)
        scores = _write(options, table, metric, chunks, source.messages)
    if options.report:
        signature = scores.signature
        report_option.write_for_pairs(options, groups, pairs, {"score": scores}, {"score": metric}, signature)


def _write_resumably(
    options: Options,
    table: ScoreTable,
    metric: SimLLM,
    rows: Iterator[PairWithId],
    total: int | None,
    messages: Sequence[str],
    target: Path,
) -> Scores:
    """Write the table into a file; the scores go through a partial file, so that memory stays constant."""
    from simllm.scoring import table as score_table

    with locked(target):
        # The scores of an earlier run may be continued only by the same metric on as many pairs.
        settings = {"signature": metric.signature, "pairs": total}
        partial = PartialFile(target, settings, options.resume)
        chunks = score_table.stream(metric.stream, rows, partial, metric.no_scores)
        done = 0
        try:
            for chunk, _ in _with_bar(options, chunks, total):
                done += len(chunk)
        except KeyboardInterrupt:
            if not partial.path.exists():
                raise KeyboardInterrupt("before any pair was scored") from None
            after = f"after {format_count(done, 'pair')}" if done else "early"
            raise KeyboardInterrupt(f"{after}; --resume continues from there") from None
        output_file.check_output(target, options.overwrite)  # another program may have just written it
        chunks = score_table.read_chunks(partial, metric.no_scores)
        scores = _write(options, table, metric, chunks, messages)
        partial.remove()
    return scores


def _refuse_finished_run(output: Path) -> None:
    """Refuse to resume a run whose output file is written already."""
    if not output.is_file() or output.stat().st_size == 0:
        return
    if partial_file.path_of(output).exists():
        raise InputError(f"{output}: exists already; --overwrite beside --resume replaces it")
    raise InputError(
        f"{output}: exists already, and there is no unfinished run; --overwrite scores all pairs again"
    )


def _write(
    options: Options,
    table: ScoreTable,
    metric: SimLLM,
    chunks: Iterable[Chunk],
    messages: Sequence[str],
) -> Scores:
    """Write a table of all pairs, which come in order and in chunks; return all scores.

    `messages` are warnings about the input.
    """
    from simllm.scoring.scores import concatenate

    parts: list[Scores] = []
    equal = EqualPairs()

    def rows() -> Iterator[tables.Rows]:
        for pairs, scores in chunks:
            parts.append(scores)
            equal.count(pairs)
            yield table.rows(pairs, scores)

    def all_scores() -> Scores:
        scores = concatenate(parts, metric.no_scores)
        return replace(
            scores, warnings=(*messages, *equal.warnings(), *metric.warnings_about(scores, table.scale))
        )

    tables.write_chunks(
        table.columns, rows(), lambda: table.summary(all_scores()), table.format, options.output
    )
    scores = all_scores()
    count = len(scores.values)
    mean = f"mean {table.scale} score", float(scores.on(table.scale).mean())
    results.tell(scores.warnings)
    shared_options.print_mean(options, table.format, count, mean, scores.signature)
    return scores


def _with_bar(options: Options, chunks: Iterable[Chunk], total: int | None) -> Iterator[Chunk]:
    """Yield chunks unchanged; show a progress bar of the pairs in them."""
    with tqdm(total=total, unit=" pairs", disable=not options.has_bar) as bar:
        for chunk in chunks:
            yield chunk
            bar.update(len(chunk[0]))


def _frequencies(file: Path | None) -> Frequencies | None:
    from simllm.scoring.token_matching import Frequencies

    return Frequencies.load(file) if file else None


_SHOWN = 5  # warnings about single tables of several files


def _score_files(options: Options, sources: list[Path]) -> None:
    """Score several files of JSON lines, write a table for each, and print a table with the mean score of
    each.
    """
    if options.output is None:
        raise InputError("expected -o FOLDER: each of the files gets a table there")
    if options.actors is not None and options.actors < 1:
        raise InputError(f"--actors {options.actors}: expected a whole number from 1")
    form = options.format or "tsv"
    if form == "text":
        raise InputError("--format text: several files give tsv or json")
    from simllm.analysis import sharded_scoring
    from simllm.analysis.sharded_scoring import RayScoring, ShardSettings

    engine = sharded_scoring.score_here
    if options.engine == "ray":
        engine = RayScoring(options.address, options.actors)
    frequencies = None if options.frequencies is None else str(options.frequencies)
    given = {"frequencies": frequencies, "scale": options.shown_scale, "format": form}
    settings = shared_options.take(ShardSettings, vars(options) | given)
    with shared_options.progress(options, " files") as progress:
        summary = sharded_scoring.score_shards(sources, options.output, settings, engine, progress)
    told = [f"{name}: {text}" for name, row in summary["tables"].items() for text in row.get("warnings", [])]
    more = [f"and {len(told) - _SHOWN} more, in summary.json"] if told[_SHOWN:] else []
    for message in (*told[:_SHOWN], *more):
        warnings.warn(message, stacklevel=2)
    table, shown = _table_of_files(summary["tables"]), tables.format_for(None, None)
    tables.write(table, shown, None)
    facts = table.summary
    mean = f"mean {options.shown_scale} score", facts["mean"]
    shared_options.print_mean(options, shown, facts["pairs"], mean, facts["signature"])


def _table_of_files(scored: dict[str, Any]) -> tables.Table:
    """Make a table with the pairs and the mean score of each file, from the facts about each output file."""
    rows = [[name, row["pairs"], row["mean"]] for name, row in scored.items()]
    # The mean of the files' means would weigh a pair in a small file more.
    pairs = sum(count for _, count, _ in rows)
    facts = {"pairs": pairs, "mean": sum(count * mean for _, count, mean in rows) / pairs}
    signatures = {row["signature"] for row in scored.values()}
    return tables.Table(("file", "pairs", "mean"), rows, {**facts, "signature": " ".join(sorted(signatures))})
