"""Collect pairs of a function and its summary from source trees.

    python -m train.code_reader.pairs ../trees/*/repo --exclude ../rated/*.jsonl --out runs/code-pairs.jsonl

The output is JSON lines with the `code`, its `summary`, `language`, `repository`, `path`, `class` and
`function`; for Java and Python often a `variant`, which is a rewrite of the code with the same behaviour. The
`split` is `dev` for all functions of some repositories, otherwise `train`.

Each code and each summary occurs once. Functions are left out if their code or summary occurs in a file of
`--exclude`, or contains or is contained in one that does. Of a repository, whole files are chosen at random
until there are enough functions, so that siblings stay together.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from simllm.code.languages.language import load_language
from simllm.code.source_files import is_generated
from simllm.errors import InputError
from simllm.evaluation.code_robustness import rewrite_function
from simllm.io import output_file, reading
from simllm.perturb.code.rules import LANGUAGES
from simllm.scoring.code import words
from simllm.text_cleaning import clean
from train.corpus.decontaminate import ExcludedTexts, read_excluded
from train.corpus.deduplicate import identity
from train.corpus.deduplicate import words as words_of_text
from train.corpus.extract import make_comment
from train.corpus.parts import Tally
from train.corpus.source_trees import Code, read_folder
from train.corpus.sources import match_files
from train.runtime.command import make_parser, run_command

_LONGEST_CODE = 4_000  # characters; the model reads about a quarter of them
_FEWEST_WORDS = 8  # of code; shorter functions have no body
_SUMMARY_WORDS = range(3, 41)
_DEV_SHARE = 16  # one repository of so many is for the criterion that chooses the best model


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.code_reader.pairs", __doc__)
    parser.add_argument("trees", type=Path, nargs="+", metavar="TREE", help="folders with source trees")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines to write")
    parser.add_argument(
        "--exclude",
        nargs="+",
        default=[],
        metavar="FILE",
        help="rated files whose texts and code are left out",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=1_500,
        help="largest number of functions of a repository in one language (default: %(default)s)",
    )
    return run_command(parser, _write, overwrite=True)


def _write(trees: list[Path], out: Path, exclude: list[str], most: int, overwrite: bool) -> None:
    output_file.check_output(out, overwrite, trees)
    texts, codes = read_excluded(exclude), read_excluded_code(exclude)
    for tree in trees:
        if not tree.is_dir():
            raise InputError(f"{tree}: no such folder")
    counts: Counter[str] = Counter()
    output_file.write(out, (json.dumps(row) + "\n" for row in collect(trees, texts, codes, most, counts)))
    print(", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()), file=sys.stderr)


def read_excluded_code(patterns: Iterable[str]) -> ExcludedTexts:
    """Read the words of the code in rated files; lines without `code` are allowed."""
    files = [file for pattern in patterns for file in match_files(pattern)]
    rows = (row for file in files for _, row in reading.objects(file))
    return ExcludedTexts(
        words(row["code"], row.get("language")) for row in rows if isinstance(row.get("code"), str)
    )


def collect(
    trees: Sequence[Path], texts: ExcludedTexts, codes: ExcludedTexts, most: int, counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the output; `counts` counts them and the functions that are left out.

    Raises InputError at the end if there are none.
    """
    seen: set[bytes] = set()
    for tree in trees:
        chosen: Counter[tuple[str, str]] = Counter()
        for code in _shuffled(read_folder(tree, 0, Tally())):
            group = code.repository, code.language
            if chosen[group] >= most or is_generated(code.data):
                continue
            for row in _functions(code, counts):
                plain = words(row["code"], row["language"])
                keys = {identity(plain), identity(clean(row["summary"]))}
                reason = (
                    "repeated"
                    if keys & seen
                    else "in a rated set"
                    if clean(row["summary"]) in texts or " ".join(words_of_text(plain)) in codes
                    else row["split"]
                )
                counts[reason] += 1
                seen |= keys
                if reason == row["split"]:
                    chosen[group] += 1
                    yield add_variant(row)
    if not counts["train"] + counts["dev"]:
        raise InputError(f"{', '.join(map(str, trees))}: no documented functions")


def _shuffled(files: Iterable[Code]) -> list[Code]:
    """Return source files in an order that depends only on their paths."""
    return sorted(files, key=lambda code: (zlib.crc32(code.path.encode("utf-8", "replace")), code.path))


def _functions(code: Code, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the documented functions of a source file whose comment and size are usable."""
    try:
        functions = list(load_language(code.language).functions(code.data.replace(b"\r\n", b"\n")))
    except (RecursionError, TimeoutError, ValueError):  # an unusual file may break a parser
        counts["unreadable file"] += 1
        return
    for function in functions:
        comment = make_comment(function, code.language, lambda reason, _: None)
        if comment is None:
            counts["unusable comment"] += 1
            continue
        length = len(words(function.code, code.language).split())
        fits_model = len(function.code) <= _LONGEST_CODE and length >= _FEWEST_WORDS
        if fits_model and len(clean(comment.summary).split()) in _SUMMARY_WORDS:
            *classes, name = function.name.split(".")
            repository = code.repository.removesuffix("/repo")
            is_dev = zlib.crc32(repository.encode("utf-8", "replace")) % _DEV_SHARE == 0
            yield {
                "code": function.code,
                "summary": comment.summary,
                "language": code.language,
                "repository": repository,
                "path": PurePath(code.path).as_posix(),
                "class": ".".join(classes),
                "function": name,
                "split": "dev" if is_dev else "train",
            }
        else:
            counts["too long or too short"] += 1


def add_variant(row: dict[str, Any]) -> dict[str, Any]:
    """Add a `variant` to the row of a Java or Python function, if the code can be rewritten."""
    if row["language"] not in LANGUAGES:
        return row
    seed = zlib.crc32(row["code"].encode("utf-8", "replace"))
    try:
        variant = rewrite_function(row["code"], row["language"], seed)
    except InputError:  # not valid alone, such as an abstract method
        return row
    return row if variant == row["code"] else row | {"variant": variant}


if __name__ == "__main__":
    sys.exit(main())
