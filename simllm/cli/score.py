"""`simllm score`: score any number of pairs in little memory, and write the scores as they come."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from simllm.cli import pair_source, score_metrics
from simllm.cli.pair_source import Row
from simllm.errors import InputError
from simllm.io import files, resume, tables
from simllm.io.resume import COMPARED
from simllm.io.row_writer import Rows
from simllm.io.tables import FORMATS as FORMATS

if TYPE_CHECKING:
    from simllm.scoring.document_frequencies import Frequencies

HELP = "score pairs of a candidate and a reference"
EXAMPLES = """examples:
  simllm score "adds two lists" "combines 2 arrays"
  simllm score -c candidates.txt -r references.txt -f tsv -o scores.tsv
  simllm score --jsonl pairs.jsonl --candidate-field pred --reference-field gold --id-field key
  zcat pairs.jsonl.gz | simllm score --jsonl - --mode fast --scale percentile
  simllm score -c candidates.txt -r references.txt --metrics simllm,rouge-l
  simllm score -f json -- "--all lists everything" "lists everything"
"""


def add_options(score: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    score.add_argument("texts", nargs="*", metavar="TEXT", help="a candidate and a reference")
    score.add_argument("-c", "--candidates", type=Path, metavar="FILE", help="candidates, one a line")
    score.add_argument("-r", "--references", type=Path, metavar="FILE", help="references, one a line")
    score.add_argument("--jsonl", type=Path, metavar="FILE", help="pairs as JSON lines; - is standard input")
    score.add_argument("--candidate-field", default="candidate", metavar="NAME", help="default: %(default)s")
    score.add_argument("--reference-field", default="reference", metavar="NAME", help="default: %(default)s")
    score.add_argument("--id-field", metavar="NAME", help="a field of the JSON lines that is carried through")
    score.add_argument(
        "--metrics", metavar="A,B,…",
        help="metrics of the registry, name or name=argument, such as simllm,rouge-l: a column for each",
    )  # fmt: skip
    score.add_argument("--pooling", metavar="NAME", help="mean, cls or max; default: the model's")
    score.add_argument(
        "--similarity", metavar="NAME",
        help="cosine, inverse-euclidean, or token by token precision, recall, f1; default: the model's",
    )  # fmt: skip
    score.add_argument(
        "--frequencies", type=Path, metavar="FILE",
        help="document frequencies that weigh tokens (see simllm frequencies); default: the references'",
    )  # fmt: skip
    score.add_argument("--mode", default="exact", metavar="NAME", help="exact (the default) or fast")
    score.add_argument(
        "--on-long", default="truncate", metavar="NAME",
        help="texts longer than the model reads: truncate (the default), window or error",
    )  # fmt: skip
    score.add_argument(
        "--scale", default="raw", metavar="NAME",
        help="raw (the default), percentile among random pairs, or rating: what the raters would say that "
        "the model was calibrated on (the included one: 1 to 5)",
    )  # fmt: skip
    score.add_argument("--skip", type=int, default=0, metavar="N", help="go on after N pairs (TSV)")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    source = pair_source.source(options)
    files.check_output(options.output, source.files, options.overwrite)
    if options.metrics is not None:
        score_metrics.run(options, source)
        return
    if options.output:
        files.check_output(resume.partial(options.output), source.files, overwrite=True)
    total = sum(1 for _ in source.rows()) if source.repeatable else None  # finds what is wrong, too
    scale, skip = options.scale, options.skip
    columns = [
        *(["id"] if options.id_field else []),
        "score",
        *(["low", "high"] if scale == "rating" else []),
    ]
    columns += ["candidate", "reference"]
    if total is not None and skip > total:
        raise InputError(f"--skip {skip}: there are {total} pairs")
    with Rows(columns, options.format, options.output, skip) as out:
        files.check_output(options.output, (), options.overwrite)  # another run may have just written it
        from simllm.metric import SimLLM  # not before the input is known to be good: torch is slow
        from simllm.scoring.scores import concatenate

        metric = SimLLM(
            options.model,
            pooling=options.pooling,
            similarity=options.similarity,
            mode=options.mode,
            on_long=options.on_long,
            frequencies=_frequencies(options.frequencies),
        )
        if metric.by_token and metric.frequencies is None and source.repeatable:
            metric.frequencies = metric.count_frequencies(row.reference for row in source.rows())
        id_format = out.format if options.id_field else None
        rest = source.rows()
        numbered = deque(enumerate(islice(rest, skip), 1), maxlen=COMPARED)
        there = numbered[-1][0] if numbered else 0
        if there < skip:
            raise InputError(f"--skip {skip}: there are {there} pairs")
        out.begin(
            {"scale": scale, "signature": metric.signature},
            tables.split([[*pair_source.shown_id(row, id_format), *row[:2]] for _, row in numbered]),
        )
        waiting: deque[Row] = deque()
        parts = []
        bar = tqdm(total=total, initial=skip, unit=" pairs", disable=options.quiet or not sys.stderr.isatty())
        for part in metric.stream(_noting(rest, waiting), skip + 1):
            rows = [waiting.popleft() for _ in part.values]
            numbers = [part.on(scale), *(part.rating_intervals if scale == "rating" else [])]
            out.write(
                [*pair_source.shown_id(row, id_format), *values, *row[:2]]
                for row, *values in zip(rows, *(column.tolist() for column in numbers), strict=True)
            )
            parts.append(part)
            bar.update(len(part.values))
        bar.close()
        scores = concatenate(parts, metric.no_scores)
        metric.warn_about_texts(2 * len(scores.values), scores.truncated, scores.unreadable)
        count = len(scores.values) + (skip if out.kept else 0)
        added_up = float(scores.on(scale).sum()) + (out.kept.total if out.kept else 0.0)
        out.summary = {
            "pairs": count,
            "mean": added_up / count if count else float("nan"),
            **({"scale": scale} if scale != "raw" else {}),
            "empty": scores.empty,
            "truncated": scores.truncated,
            "deduplicated": scores.deduplicated,
            "signature": scores.signature,
        }
    if out.format == "tsv" and not (options.texts or options.quiet):  # which has room for rows only
        mean = "" if skip and not out.kept else f"mean {scale} score {out.summary['mean']:.4f}, "
        print(f"simllm: {count:,} pairs, {mean}{scores.signature}", file=sys.stderr)


def _frequencies(file: Path | None) -> Frequencies | None:
    from simllm.scoring.document_frequencies import Frequencies

    return Frequencies.load(file) if file else None


def _noting(rows: Iterator[Row], waiting: deque[Row]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `rows`; append the rows to `waiting` until their scores are there."""
    for row in rows:
        waiting.append(row)
        yield row.candidate, row.reference
