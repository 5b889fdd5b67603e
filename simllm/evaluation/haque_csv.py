"""Reader of `final_megafile.csv`, a table of human ratings that Haque et al. published.

The study is "Semantic similarity metrics for evaluating source code summarization", 2022. Each row has one
rating. Its columns are the function, the rater, two summaries of the function, the similarity of the two
summaries from 1 to 4, and the values of many metrics. The two summaries are in the columns `text` and
`text.1`. The column `source` tells which of these columns has the reference; the other has the candidate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import read_csv

_NEEDED = ("function_id", "user_id", "similarity", "source", "text", "text.1")
_NOT_METRICS = {"", "Unnamed: 0", "accurate", "adequate", "concise", "bleu_cat", "function", *_NEEDED}


def read_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the table of Haque et al., which has a row for each rating, and collect the ratings by function.

    A function has one pair of texts (candidate and reference), which several people rated. Placeholders such
    as `<UNK>` are removed from the candidates. The authors do the same before they compute metrics.

    Args:
        file: The CSV file.

    Yields:
        For each function: the place where it first occurs in the file, such as "FILE, row 3"; and a dict
        with the pair and all its ratings. The dict's keys are described in `simllm.evaluation.ratings`.

    Raises:
        InputError: The file is not the table of Haque et al.
    """
    pairs: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, line in _lines(file):
        try:
            texts = (
                (line["text"], line["text.1"])
                if line["source"] == "reference"
                else (line["text.1"], line["text"])
            )
            row = {
                "reference": texts[0],
                "candidate": " ".join(re.sub(r"<\S+>", " ", texts[1]).split()),
                "language": "java",
                "metrics": {k: float(v) for k, v in line.items() if k not in _NOT_METRICS and v},
            }
            rating = float(line["similarity"])
            if not math.isfinite(rating):
                raise ValueError(f"similarity {rating}")
        except (TypeError, ValueError) as error:
            reason = "too few cells" if isinstance(error, TypeError) else error
            raise InputError(f"{where}: not a row of the table of Haque et al. ({reason})") from None
        _, pair = pairs.setdefault(line["function_id"], (where, row | {"ratings": {}}))
        pair["ratings"][line["user_id"]] = rating
    yield from pairs.values()


def _lines(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of the CSV file below its header.

    Yields:
        For each row: its place for error messages, such as "FILE, row 3"; and a dict from column name to
        cell.

    Raises:
        InputError: The file is not CSV, or a necessary column is missing.
    """
    names, rows = read_csv.rows(file, _NEEDED)
    if missing := [name for name in _NEEDED if name not in names]:
        raise InputError(
            f"{file}: has no column {', '.join(missing)}; expected JSON lines with reference, "
            "candidate and rating, or the CSV table of Haque et al. (final_megafile.csv)"
        )
    for where, values in rows:
        yield where, dict(zip(names, values, strict=True))
