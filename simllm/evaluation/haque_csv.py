"""Reader of `final_megafile.csv`, a table of human ratings that Haque et al. published.

The study is "Semantic similarity metrics for evaluating source code summarization", 2022. Each row has one
rating: the function, the rater, two summaries of the function, their similarity from 1 to 4, and the values
of many metrics. The column `source` tells which of the columns `text` and `text.1` has the reference; the
other has the candidate.
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
    """Read the table, and collect the ratings by function, which has one pair of texts and several raters.

    Yields the place of the function's first row, such as "FILE, row 3", and a dict like a line of a file of
    ratings (see `simllm.evaluation.ratings`).
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
                # The candidates have placeholders such as <UNK>. The authors remove them before they compute
                # metrics.
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
    """Yield the place of each row below the header, and a dict from column name to cell."""
    names, rows = read_csv.rows(file, _NEEDED)
    if missing := [name for name in _NEEDED if name not in names]:
        raise InputError(
            f"{file}: has no column {', '.join(missing)}; expected JSON lines with reference, "
            "candidate and rating, or the CSV table of Haque et al. (final_megafile.csv)"
        )
    for where, values in rows:
        yield where, dict(zip(names, values, strict=True))
