"""`simllm score`: score any number of text pairs (candidate, reference) in constant memory."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from simllm.cli import results, score_files, score_report_option, score_with_metrics, shared_options
from simllm.cli.results import print_mean
from simllm.cli.score_report_option import Groups
from simllm.errors import InputError
from simllm.io import output_file, partial_file, tables
from simllm.io.output_file import locked
from simllm.io.partial_file import PartialFile
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import format_count
from simllm.io.text_pairs import EqualPairs, PairSource, PairWithId, from_files, from_jsonl
from simllm.text_cleaning import encodable

if TYPE_CHECKING:
    from simllm.metric import SimLLM
    from simllm.scoring.frequencies import Frequencies
    from simllm.scoring.scores import Scores
    from simllm.scoring.table import Chunk

HELP = "score pairs of a candidate and a reference"
EXAMPLES = """examples:
  simllm score "adds two lists" "combines 2 arrays"
  simllm score -c candidates.txt -r references.txt -f tsv -o scores.tsv
  simllm score --jsonl pairs.jsonl --candidate-field pred --reference-field gold --id-field key
  zcat pairs.jsonl.gz | simllm score --jsonl - --mode fast --scale percentile
  simllm score -c candidates.txt -r references.txt --metrics simllm,rouge-l
  simllm score --jsonl pairs.jsonl --report report.html --group-by language
  simllm score --jsonl 'shards/*.jsonl.gz' -o scores/ --engine ray --address auto
  simllm score -f json -- "--all lists everything" "lists everything"
"""
# Options that only pairs in JSON lines have, with their defaults.
_JSON_ONLY = {"candidate_field": "candidate", "reference_field": "reference", "id_field": None}


def add_options(score: argparse.ArgumentParser) -> None:
    """Add the options of `simllm score` to its parser."""
    score.add_argument("texts", nargs="*", metavar="TEXT", help="a candidate and a reference")
    score.add_argument("-c", "--candidates", type=Path, metavar="FILE", help="candidates, one per line")
    score.add_argument("-r", "--references", type=Path, metavar="FILE", help="references, one per line")
    score.add_argument(
        "--jsonl",
        type=Path,
        metavar="FILE",
        help="pairs as JSON lines; - is standard input; a pattern such as '*.jsonl' names several files",
    )
    score_files.add_options(score)
    score.add_argument("--candidate-field", default="candidate", metavar="NAME", help="default: %(default)s")
    score.add_argument("--reference-field", default="reference", metavar="NAME", help="default: %(default)s")
    score.add_argument(
        "--source-field", default="source", metavar="NAME",
        help="for metrics of edits: the code before the change; default: %(default)s",
    )  # fmt: skip
    score.add_argument("--id-field", metavar="NAME", help="a field of the JSON lines that is carried through")
    score.add_argument(
        "--language", metavar="NAME", help="for metrics of code: the language of lines without `language`"
    )
    score.add_argument(
        "--metrics", metavar="A,B,…",
        help="metrics of the registry, name or name=argument, such as simllm,rouge-l: a column for each",
    )  # fmt: skip
    shared_options.add_code_options(score)
    score.add_argument("--pooling", metavar="NAME", help="mean, cls or max; default: the model's")
    score.add_argument(
        "--similarity", metavar="NAME",
        help="cosine, inverse-euclidean, or token by token precision, recall, f1; default: the model's",
    )  # fmt: skip
    score.add_argument(
        "--frequencies", type=Path, metavar="FILE",
        help="for precision, recall and f1: document frequencies that weigh tokens (see simllm frequencies); "
        "default: the references'",
    )  # fmt: skip
    score.add_argument(
        "--mode",
        default="exact",
        choices=("exact", "fast"),
        help="the precision: exact (the default) or fast",
    )
    score.add_argument(
        "--on-long", default="truncate", choices=("truncate", "window", "error"),
        help="texts longer than the model reads: truncate (the default), window or error",
    )  # fmt: skip
    score.add_argument(
        "--measure", default="similarity", choices=("similarity", "same"),
        help="the score: similarity (the default), or the probability that both texts have the same meaning",
    )  # fmt: skip
    score.add_argument(
        "--scale", default="raw", choices=("raw", "percentile", "rating"),
        help="raw (the default), percentile among random pairs, or rating: what the raters would say that "
        "the model was calibrated on (the included one: 1 to 5)",
    )  # fmt: skip
    score.add_argument(
        "--resume", action="store_true", help="continue a run with -o FILE that was stopped"
    )  # fmt: skip
    score_report_option.add_option(score)
    score_report_option.add_group_option(score)


def run(options: argparse.Namespace) -> None:
    """Run `simllm score`: read text pairs, score them and write a table."""
    scale = _scale(options)
    if options.jsonl is None:
        shared_options.refuse(options, _JSON_ONLY, "goes with --jsonl FILE")
    if options.metrics is None:
        score_with_metrics.refuse_code_options(options)
    # A pattern is not expanded by the shell if it is in quotes; many files would not fit a command line.
    if several := score_files.matching_files(options.jsonl):
        score_files.run(options, several, scale)
        return
    score_files.refuse_engine_options(options)
    source = _choose_source(options)
    output: Path | None = options.output
    output_file.check_output(output, source.files, options.overwrite or options.resume)
    score_report_option.check(options, source.files)
    groups = score_report_option.read_groups(options)
    if options.metrics is not None:
        score_with_metrics.run(options, source, groups)
        return
    # A file is written when all pairs are scored. Standard output, pipes and devices get each pair at once.
    target = output_file.real(output) if output and (output.is_file() or not output.exists()) else None
    if target:
        output_file.check_output(partial_file.path_of(target), source.files, overwrite=True)
    # Standard output holds nothing that could be continued.
    elif options.resume:
        raise InputError("--resume goes with -o FILE")
    if target and options.resume and not options.overwrite:
        _refuse_finished_run(target)
    total = sum(1 for _ in source.rows()) if source.repeatable else None  # this also checks the input
    from simllm.metric import SimLLM  # not before the input is known to be good: torch is slow
    from simllm.scoring import table as score_table

    metric = SimLLM(
        options.model,
        pooling=options.pooling,
        similarity=options.similarity,
        mode=options.mode,
        on_long=options.on_long,
        frequencies=_frequencies(options.frequencies),
    )
    metric.no_scores.on(scale)  # a wrong scale is refused now, not after an hour
    if metric.by_token and metric.frequencies is None and source.repeatable:
        metric.frequencies = metric.count_frequencies(row.reference for row in source.rows())
    # The report shows all pairs, which then do not fit into constant memory.
    pairs = list(source.rows()) if options.report else []
    rows = iter(pairs) if options.report else source.rows()  # standard input can be read once only
    bar = tqdm(total=total, unit=" pairs", disable=options.quiet or not sys.stderr.isatty())
    if target is None:
        scores = _write(options, scale, metric, _with_bar(metric.stream(rows), bar), source.messages)
        _write_report(options, groups, pairs, scores, metric)
        return
    with locked(target):
        # The scores of an earlier run may be continued only by the same metric on as many pairs.
        partial = PartialFile(target, {"signature": metric.signature, "pairs": total}, options.resume)
        chunks = score_table.stream(metric.stream, rows, partial, metric.no_scores)
        done = 0
        try:
            # The scores go through the partial file, so that memory stays constant.
            for chunk, _ in _with_bar(chunks, bar):
                done += len(chunk)
        except KeyboardInterrupt:
            if not partial.path.exists():
                raise KeyboardInterrupt("before any pair was scored") from None
            after = f"after {format_count(done, 'pair')}" if done else "early"
            raise KeyboardInterrupt(f"{after}; --resume continues from there") from None
        output_file.check_output(target, (), options.overwrite)  # another program may have just written it
        finished = score_table.read_chunks(partial, metric.no_scores)
        scores = _write(options, scale, metric, finished, source.messages)
        partial.remove()
    _write_report(options, groups, pairs, scores, metric)


def _refuse_finished_run(output: Path) -> None:
    """Refuse to resume a run whose output file is written already."""
    if not output.is_file() or output.stat().st_size == 0:
        return
    if partial_file.path_of(output).exists():
        raise InputError(f"{output}: exists already; --overwrite beside --resume replaces it")
    raise InputError(
        f"{output}: exists already, and there is no unfinished run; --overwrite scores all pairs again"
    )


def _scale(options: argparse.Namespace) -> str:
    """Return the scale of the shown scores: "same" with `--measure same`, else the value of `--scale`."""
    if options.measure == "same" and options.scale != "raw":
        raise InputError("--measure same is a probability; it goes without --scale")
    return "same" if options.measure == "same" else str(options.scale)


def _choose_source(options: argparse.Namespace) -> PairSource:
    """Return the source of the pairs: the command line, two text files, or a file of JSON lines."""
    two_files = options.candidates is not None or options.references is not None
    if sum([bool(options.texts), two_files, options.jsonl is not None]) != 1:
        raise InputError("expected either two texts, or -c FILE -r FILE, or --jsonl FILE")
    if options.jsonl is not None:
        fields = (options.candidate_field, options.reference_field, options.id_field)
        return PairSource(lambda: from_jsonl(options.jsonl, *fields), (options.jsonl,))
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
        raise InputError(
            f"{options.texts[0]}: to read pairs from files, use --jsonl FILE, or -c FILE -r FILE"
        )
    if len(options.texts) != 2:
        raise InputError(f"expected two texts, a candidate and a reference; got {len(options.texts)}")
    if all(map(os.path.isfile, options.texts)):
        message = "both texts are names of files, and the names themselves are scored; -c and -r read files"
        warnings.warn(message, stacklevel=2)
    return PairSource(lambda: iter([PairWithId(*map(encodable, options.texts))]), ())


def _write(
    options: argparse.Namespace, scale: str, metric: SimLLM, chunks: Iterable[Chunk], messages: Sequence[str]
) -> Scores:
    """Write a table of all pairs, which come in order and in chunks; return all scores.

    `messages` are warnings about the input.
    """
    from simllm.scoring.scores import concatenate
    from simllm.scoring.table import ScoreTable

    form = tables.format_for(options.format, options.output)
    table = ScoreTable(scale, form, options.id_field is not None, metric.no_scores)
    parts: list[Scores] = []
    equal = EqualPairs()

    def rows() -> Iterator[tables.Rows]:
        for pairs, scores in chunks:
            parts.append(scores)
            equal.count(pairs)
            yield table.rows(pairs, scores)

    def all_scores() -> Scores:
        scores = concatenate(parts, metric.no_scores)
        return replace(scores, warnings=(*messages, *equal.warnings(), *metric.warnings_about(scores)))

    tables.write_chunks(table.columns, rows(), lambda: table.summary(all_scores()), form, options.output)
    scores = all_scores()
    results.tell(scores.warnings)
    count = len(scores.values)
    mean = f"mean {scale} score", float(scores.on(scale).mean())
    print_mean(options, form, count, mean, scores.signature)
    return scores


def _write_report(
    options: argparse.Namespace,
    groups: Groups,
    pairs: Sequence[PairWithId],
    scores: Scores,
    metric: SimLLM,
) -> None:
    """Write the HTML report, if `--report` asks for it."""
    if options.report is None:
        return
    from simllm.analysis.score_report import ScoredPairs

    scored = ScoredPairs(
        [pair.reference for pair in pairs],
        {"": [pair.candidate for pair in pairs]},
        {"score": scores.values},
        ids=[pair.id for pair in pairs] if options.id_field else None,
        groups=groups,
        **score_report_option.columns_of({"score": scores}),
    )
    score_report_option.write(options, scored, {"score": metric})


def _with_bar(chunks: Iterable[Chunk], bar: tqdm[Any]) -> Iterator[Chunk]:
    """Yield chunks unchanged; advance a progress bar by the number of pairs in each chunk."""
    with bar:
        for chunk in chunks:
            yield chunk
            bar.update(len(chunk[0]))


def _frequencies(file: Path | None) -> Frequencies | None:
    from simllm.scoring.frequencies import Frequencies

    return Frequencies.load(file) if file else None
