"""The options of `simllm score`, and which of them go together."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from simllm.cli import shared_options
from simllm.cli.report_option import PairOptions
from simllm.errors import InputError

# Options that only metrics for code use, and what is wrong with them elsewhere.
FOR_CODE = (
    ("source_field", "language", "as_published", "largest_tree"),
    "goes with metrics for code in --metrics",
)
_NOT_AGAINST_CODE = (
    "candidates", "references", "metrics", "judge", "pooling", "similarity", "frequencies", "scale",
    "measure", "prior", "resume",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """The options of `simllm score`."""

    # Where the pairs come from.
    texts: list[str]
    candidates: Path | None = None
    references: Path | None = None
    candidate_field: str = "candidate"
    reference_field: str = "reference"
    source_field: str = "source"
    # The code that candidates describe.
    against: str | None = None
    code_field: str = "code"
    # Several files.
    engine: str = "local"
    address: str | None = None
    actors: int | None = None
    # Any metrics.
    metrics: str | None = None
    language: str | None = None
    as_published: bool = False
    largest_tree: int | None = None
    # A judge for pairs about which the learned metric is unsure.
    judge: Path | None = None
    judge_below: str | None = None
    # The learned metric.
    model: str | None = None
    pooling: str | None = None
    similarity: str | None = None
    frequencies: Path | None = None
    mode: str = "exact"
    device: str | None = None
    on_long: str = "truncate"
    long: str | None = None
    measure: str = "similarity"
    prior: float = 0.5
    scale: str = "raw"
    resume: bool = False

    @property
    def shown_scale(self) -> str:
        """The scale of the shown scores."""
        return self.scale if self.measure == "similarity" else self.measure

    def check(self, has_several_files: bool) -> None:
        """Refuse options that have no effect on the chosen way of scoring."""
        if self.measure != "similarity" and self.scale != "raw":
            raise InputError(f"--measure {self.measure} has a scale of its own; it goes without --scale")
        if self.jsonl is None:
            only_json = ("candidate_field", "reference_field", "id_field")
            shared_options.refuse(self, only_json, "goes with --jsonl FILE or --table FILE")
        reads_code = self.against not in (None, "reference")
        if reads_code:
            shared_options.refuse(self, _NOT_AGAINST_CODE, f"does not go with --against {self.against}")
        else:
            shared_options.refuse(self, ("code_field",), "goes with --against code or both")
        if self.metrics is None:
            own = {"source_field"} if self.judge is not None else {"language"} if reads_code else set()
            only_code = [name for name in FOR_CODE[0] if name not in own]
            shared_options.refuse(self, only_code, FOR_CODE[1])
        if (self.judge is None) != (self.judge_below is None):
            raise InputError("--judge FILE and --judge-below LOW:HIGH go together")
        if self.judge is not None:
            apart = (
                "metrics",
                "similarity",
                "frequencies",
                "scale",
                "measure",
                "resume",
                "report",
                "group_by",
            )
            shared_options.refuse(self, apart, "does not go with --judge")
        if has_several_files:
            if self.texts:
                raise InputError("TEXT does not go with several files in --jsonl")
            one_file = (
                "candidates",
                "references",
                "against",
                "metrics",
                "judge",
                "resume",
                "overwrite",
                "report",
                "group_by",
            )
            shared_options.refuse(self, one_file, "does not go with several files in --jsonl")
            if self.engine == "local":
                shared_options.refuse(self, ("address", "actors"), "goes with --engine ray")
            return
        several = ("engine", "address", "actors")
        shared_options.refuse(self, several, "goes with several files: --jsonl 'PATTERN'")
        if self.metrics is not None:
            learned = [
                "pooling",
                "similarity",
                "frequencies",
                "mode",
                "device",
                "on_long",
                "long",
                "scale",
                "measure",
                "prior",
            ]
            shared_options.refuse(self, [*learned, "resume"], "does not go with --metrics")


def add_options(score: argparse.ArgumentParser) -> None:
    """Add the options of `simllm score` to its parser."""
    score.add_argument("texts", nargs="*", metavar="TEXT", help="a candidate and a reference")
    score.add_argument("-c", "--candidates", type=Path, metavar="FILE", help="candidates, one per line")
    score.add_argument("-r", "--references", type=Path, metavar="FILE", help="references, one per line")
    score.add_argument(
        "--jsonl",
        "--table",
        dest="jsonl",
        type=Path,
        metavar="FILE",
        help="pairs as JSON lines, CSV or TSV; - is standard input (JSON lines); a pattern such as '*.jsonl' "
        "names several files",
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
    score.add_argument(
        "--against", choices=("reference", "code", "both"),
        help="the reference (the default), the code that the candidate describes, or both",
    )  # fmt: skip
    score.add_argument("--code-field", metavar="NAME", help="for --against; default: %(default)s")
    score.add_argument("--id-field", metavar="NAME", help="a field or column that is carried through")
    score.add_argument("--language", metavar="NAME", help="of code: the language of lines without `language`")
    score.add_argument(
        "--metrics", metavar="A,B,…",
        help="metrics of the registry, name or name=argument, such as simllm,rouge-l: a column for each",
    )  # fmt: skip
    shared_options.add_code_options(score)
    score.add_argument(
        "--judge", type=Path, metavar="FILE",
        help="a judge (TOML) that is asked about the pairs of --judge-below",
    )  # fmt: skip
    score.add_argument(
        "--judge-below", metavar="LOW:HIGH",
        help="the pairs for the judge: those whose probability of the same meaning lies in this interval",
    )  # fmt: skip
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
        "--device", metavar="NAME",
        help="cpu, cuda (NVIDIA or AMD) or mps (Apple); default: cuda if it is there, otherwise cpu",
    )  # fmt: skip
    score.add_argument(
        "--on-long", choices=("truncate", "window", "error"),
        help="texts longer than the model reads: truncate (the default), window or error",
    )  # fmt: skip
    score.add_argument(
        "--long", choices=("sentences", "whole"),
        help="texts with several sentences: compared clause by clause, where excess length costs (the "
        "default), or as a whole",
    )  # fmt: skip
    score.add_argument(
        "--measure", choices=("similarity", "same", "graded"),
        help="the score: similarity (the default), the probability that both texts have the same meaning, or "
        "the graded similarity, as people grade it",
    )  # fmt: skip
    score.add_argument(
        "--prior", type=float, metavar="P",
        help="the share of pairs with the same meaning that you expect, for the probability of the same "
        "meaning; default: %(default)s",
    )  # fmt: skip
    score.add_argument(
        "--scale",
        choices=("raw", "percentile"),
        help="raw (the default), or percentile among random pairs",
    )
    score.add_argument(
        "--resume", action="store_true", help="continue a run with -o FILE that was stopped"
    )  # fmt: skip
    shared_options.add_report_option(score)
    score.add_argument(
        "--group-by",
        metavar="A,B,…",
        help="for --report: fields or columns to group pairs by",
    )
