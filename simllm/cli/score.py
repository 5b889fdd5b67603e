"""`simllm score`: score any number of text pairs (candidate, reference) in constant memory."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from simllm.cli import report_option, results, score_by_metrics, score_files, shared_options
from simllm.cli.report_option import Groups, ReportOptions
from simllm.cli.results import print_mean
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
    from simllm.scoring.streaming import Chunk

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


@dataclass(frozen=True, kw_only=True)
class Options(ReportOptions):
    """The options of `simllm score`."""

    # Where the pairs come from.
    texts: list[str]
    candidates: Path | None = None
    references: Path | None = None
    jsonl: Path | None = None
    candidate_field: str = "candidate"
    reference_field: str = "reference"
    source_field: str = "source"
    id_field: str | None = None
    group_by: str | None = None
    # Several files.
    engine: str = "local"
    address: str | None = None
    actors: int | None = None
    # Any metrics.
    metrics: str | None = None
    language: str | None = None
    as_published: bool = False
    largest_tree: int | None = None
    # The learned metric.
    model: str | None = None
    pooling: str | None = None
    similarity: str | None = None
    frequencies: Path | None = None
    mode: str = "exact"
    on_long: str = "truncate"
    measure: str = "similarity"
    scale: str = "raw"
    resume: bool = False

    @property
    def shown_scale(self) -> str:
        """The scale of the shown scores."""
        return "same" if self.measure == "same" else self.scale

    def check(self, has_several_files: bool) -> None:
        """Refuse options that have no effect on the chosen way of scoring."""
        if self.measure == "same" and self.scale != "raw":
            raise InputError("--measure same is a probability; it goes without --scale")
        if self.jsonl is None:
            only_json = ("candidate_field", "reference_field", "id_field")
            shared_options.refuse(self, only_json, "goes with --jsonl FILE")
        if self.metrics is None:
            self.refuse_code_options()
        if has_several_files:
            if self.texts:
                raise InputError("TEXT does not go with several files in --jsonl")
            one_file = ("candidates", "references", "metrics", "resume", "overwrite", "report", "group_by")
            shared_options.refuse(self, one_file, "does not go with several files in --jsonl")
            if self.engine == "local":
                shared_options.refuse(self, ("address", "actors"), "goes with --engine ray")
            return
        several = ("engine", "address", "actors")
        shared_options.refuse(self, several, "goes with several files: --jsonl 'PATTERN'")
        if self.metrics is not None:
            learned = ["pooling", "similarity", "frequencies", "mode", "on_long", "scale", "measure"]
            shared_options.refuse(self, [*learned, "resume"], "does not go with --metrics")

    def refuse_code_options(self) -> None:
        """Refuse options that only metrics for code use."""
        code = ("source_field", "language", "as_published", "largest_tree")
        shared_options.refuse(self, code, "goes with metrics for code in --metrics")


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
    score.add_argument(
        "--engine", choices=("local", "ray"), help="for many files: this process, or a Ray cluster"
    )
    score.add_argument("--address", metavar="ADDRESS", help="of the Ray cluster, or auto; default: start one")
    score.add_argument("--actors", type=int, metavar="N", help="of Ray; default: one on each processor")
    score.add_argument("--candidate-field", metavar="NAME", help="default: %(default)s")
    score.add_argument("--reference-field", metavar="NAME", help="default: %(default)s")
    score.add_argument(
        "--source-field", metavar="NAME",
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
        choices=("exact", "fast"),
        help="the precision: exact (the default) or fast",
    )
    score.add_argument(
        "--on-long", choices=("truncate", "window", "error"),
        help="texts longer than the model reads: truncate (the default), window or error",
    )  # fmt: skip
    score.add_argument(
        "--measure", choices=("similarity", "same"),
        help="the score: similarity (the default), or the probability that both texts have the same meaning",
    )  # fmt: skip
    score.add_argument(
        "--scale", choices=("raw", "percentile", "rating"),
        help="raw (the default), percentile among random pairs, or rating: what the raters would say that "
        "the model was calibrated on (the included one: 1 to 5)",
    )  # fmt: skip
    score.add_argument(
        "--resume", action="store_true", help="continue a run with -o FILE that was stopped"
    )  # fmt: skip
    report_option.add_option(score)
    score.add_argument(
        "--group-by",
        metavar="A,B,…",
        help="for --report: fields of the JSON lines to group pairs by",
    )


def run(options: Options) -> None:
    """Run `simllm score`: read text pairs, score them and write a table."""
    # A pattern is not expanded by the shell if it is in quotes; many files would not fit a command line.
    several = score_files.matching_files(options.jsonl)
    options.check(has_several_files=bool(several))
    if several:
        score_files.run(options, several)
        return
    source = _choose_source(options)
    output_file.check_output(options.output, options.overwrite or options.resume)
    report_option.check(options)
    groups = report_option.read_groups(options)
    if options.metrics is None:
        _score(options, source, groups)
    else:
        score_by_metrics.run(options, source, groups)


def _choose_source(options: Options) -> PairSource:
    """Return the source of the pairs: the command line, two text files, or a file of JSON lines."""
    two_files = options.candidates is not None or options.references is not None
    if sum([bool(options.texts), two_files, options.jsonl is not None]) != 1:
        raise InputError("expected either two texts, or -c FILE -r FILE, or --jsonl FILE")
    if (file := options.jsonl) is not None:
        fields = (options.candidate_field, options.reference_field, options.id_field)
        return PairSource(lambda: from_jsonl(file, *fields), (file,))
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
    from simllm.metric import SimLLM  # not before the input is known to be good: torch is slow

    metric = SimLLM(
        options.model,
        pooling=options.pooling,
        similarity=options.similarity,
        mode=options.mode,
        on_long=options.on_long,
        frequencies=_frequencies(options.frequencies),
    )
    metric.no_scores.on(options.shown_scale)  # a wrong scale is refused now, not after an hour
    if metric.by_token and metric.frequencies is None and source.repeatable:
        metric.frequencies = metric.count_frequencies(row.reference for row in source.rows())
    # The report shows all pairs, which then do not fit into constant memory.
    pairs = list(source.rows()) if options.report else []
    rows = iter(pairs) if options.report else source.rows()  # standard input can be read once only
    if target:
        scores = _write_resumably(options, metric, rows, total, source.messages, target)
    else:
        chunks = _with_bar(options, metric.stream(rows), total)
        scores = _write(options, metric, chunks, source.messages)
    signature = scores.signature
    report_option.write_for_pairs(options, groups, pairs, {"score": scores}, {"score": metric}, signature)


def _write_resumably(
    options: Options,
    metric: SimLLM,
    rows: Iterator[PairWithId],
    total: int | None,
    messages: Sequence[str],
    target: Path,
) -> Scores:
    """Write the table into a file; the scores go through a partial file, so that memory stays constant."""
    from simllm.scoring import streaming

    with locked(target):
        # The scores of an earlier run may be continued only by the same metric on as many pairs.
        settings = {"signature": metric.signature, "pairs": total}
        partial = PartialFile(target, settings, options.resume)
        chunks = streaming.stream(metric.stream, rows, partial, metric.no_scores)
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
        scores = _write(options, metric, streaming.read_chunks(partial, metric.no_scores), messages)
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


def _write(options: Options, metric: SimLLM, chunks: Iterable[Chunk], messages: Sequence[str]) -> Scores:
    """Write a table of all pairs, which come in order and in chunks; return all scores.

    `messages` are warnings about the input.
    """
    from simllm.scoring.scores import ScoreTable, concatenate

    scale, form = options.shown_scale, tables.format_for(options.format, options.output)
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


def _with_bar(options: Options, chunks: Iterable[Chunk], total: int | None) -> Iterator[Chunk]:
    """Yield chunks unchanged; show a progress bar of the pairs in them."""
    with tqdm(total=total, unit=" pairs", disable=not options.has_bar) as bar:
        for chunk in chunks:
            yield chunk
            bar.update(len(chunk[0]))


def _frequencies(file: Path | None) -> Frequencies | None:
    from simllm.scoring.frequencies import Frequencies

    return Frequencies.load(file) if file else None
