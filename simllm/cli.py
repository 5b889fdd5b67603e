"""The command `simllm`: every subcommand is one thin call of the API."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from pathlib import Path
from typing import NoReturn

import simllm
from simllm import pairs, tables
from simllm.errors import InputError
from simllm.evaluation import cli as evaluation

_SCORE_EXAMPLES = """examples:
  simllm score "adds two lists" "combines 2 arrays"
  simllm score -c candidates.txt -r references.txt -f tsv -o scores.tsv
  simllm score --jsonl pairs.jsonl --candidate-field pred --reference-field gold
  simllm score -f json -- "--all lists everything" "lists everything"
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 2 for bad input, 130 when interrupted."""
    for stream in (sys.stdout, sys.stderr):  # what the locale cannot show is escaped, not fatal
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    warnings.showwarning = _show_warning if not options.quiet else lambda *_, **__: None
    try:
        options.run(options)
        sys.stdout.flush()
    except InputError as error:
        print(f"simllm: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        print(f"simllm: error: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("simllm: interrupted", file=sys.stderr)
        return 130
    return 0


def _score(options: argparse.Namespace) -> None:
    candidates, references = _pairs(options)
    for file in (options.candidates, options.references, options.jsonl):
        if file and options.output and file.resolve() == options.output.resolve():
            raise InputError(f"-o {options.output}: would overwrite what is to be scored")
    from simllm.metric import SimLLM  # not before the input is known to be good: torch is slow

    metric = SimLLM(options.model, pooling=options.pooling, similarity=options.similarity)
    scores = metric.score(candidates, references)
    table = tables.Table(
        columns=("score", "candidate", "reference"),
        rows=list(zip(scores.values.tolist(), candidates, references, strict=True)),
        summary={
            "pairs": len(candidates),
            "mean": scores.mean,
            "empty": scores.empty,
            "truncated": scores.truncated,
            "deduplicated": scores.deduplicated,
            "signature": scores.signature,
        },
    )
    tables.write(table, options.format, options.output)


def _pairs(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The candidates and references from whichever of the three forms was used."""
    files = options.candidates is not None or options.references is not None
    forms = [bool(options.texts), files, options.jsonl is not None]
    if sum(forms) != 1:
        raise InputError("expected either two texts, or -c FILE -r FILE, or --jsonl FILE")
    if options.jsonl is not None:
        return pairs.from_jsonl(options.jsonl, options.candidate_field, options.reference_field)
    if files:
        if options.candidates is None or options.references is None:
            raise InputError("-c and -r go together: a file of candidates, a file of references")
        return pairs.from_files(options.candidates, options.references)
    if len(options.texts) != 2:
        raise InputError(f"expected two texts, a candidate and a reference; got {len(options.texts)}")
    return [options.texts[0]], [options.texts[1]]


class _Parser(argparse.ArgumentParser):
    """Answers a wrong command line by one line, as everything else is answered."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with status 2."""
        self.exit(2, f"simllm: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="simllm",
        description="Does a generated code summary say the same as the reference?",
        epilog='example:\n  simllm score "adds two lists" "combines 2 arrays"\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simllm {simllm.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    score = _command(commands, "score", "score pairs of a candidate and a reference", _SCORE_EXAMPLES)
    score.add_argument("texts", nargs="*", metavar="TEXT", help="a candidate and a reference")
    score.add_argument("-c", "--candidates", type=Path, metavar="FILE", help="candidates, one a line")
    score.add_argument("-r", "--references", type=Path, metavar="FILE", help="references, one a line")
    score.add_argument("--jsonl", type=Path, metavar="FILE", help="pairs as JSON lines")
    score.add_argument("--candidate-field", default="candidate", metavar="NAME", help="default: %(default)s")
    score.add_argument("--reference-field", default="reference", metavar="NAME", help="default: %(default)s")
    score.add_argument("--pooling", metavar="NAME", help="mean, cls or max; default: the model's")
    score.add_argument(
        "--similarity", metavar="NAME", help="cosine or inverse-euclidean; default: the model's"
    )
    score.set_defaults(run=_score)

    evaluate = _command(
        commands, "evaluate", "correlate metrics with human ratings (Spearman)", evaluation.EXAMPLES
    )
    evaluation.add(evaluate, _command)
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, help_: str, examples: str
) -> argparse.ArgumentParser:
    """Add a subcommand with the options that all of them have."""
    command = commands.add_parser(
        name,
        help=help_,
        description=help_[0].upper() + help_[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--model", metavar="FOLDER", help="a model folder; default: the one included")
    command.add_argument(
        "-f", "--format", choices=tables.FORMATS, help="default: text on a terminal, tsv in a pipe or file"
    )
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there, not to stdout")
    command.add_argument("-q", "--quiet", action="store_true", help="no warnings")
    return command


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"simllm: warning: {message}", file=sys.stderr)
