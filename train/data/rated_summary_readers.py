"""Readers of summaries and code snippets that people have rated."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from statistics import fmean

from simllm.errors import InputError
from simllm.optional_packages import missing_package
from train.data.parse_fetched_file import Row, SourceFile

# Columns of Haque et al. that do not contain metrics.
_HAQUE = {"", "Unnamed: 0", "function_id", "user_id", "accurate", "adequate", "concise", "similarity"}
_HAQUE |= {"source", "text", "text.1", "function", "bleu_cat"}
_ASPECTS = ("accurate", "adequate", "concise")
_SHEN_METRICS = ("bleu4", "bleu42", "rouge", "cider", "ciderd")


def haque(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of Haque et al. (2022) with their ratings and the metrics that the authors studied.

    Three of a pair's six raters rate how accurate, adequate and concise the reference is, the other three the
    generated summary. All six rate how similar both are.
    """
    for file in files:
        groups: dict[str, list[dict[str, str]]] = {}
        for row in csv.DictReader(io.StringIO(file.text, newline="")):
            groups.setdefault(row["function_id"], []).append(row)
        for identifier, rows in groups.items():
            sides = {
                "candidate": [row for row in rows if row["source"] == "baseline"],
                "reference": [row for row in rows if row["source"] == "reference"],
            }
            first = sides["reference"][0]
            ratings = [int(row["similarity"]) for row in rows]
            yield {
                "id": int(identifier),
                "language": "java",
                "reference": first["text"],
                "candidate": first["text.1"],
                "candidate_clean": " ".join(first["text.1"].replace("<UNK>", "").split()),
                "rating": fmean(ratings),
                "ratings": ratings,
                "raters": [int(row["user_id"]) for row in rows],
                **{
                    f"{aspect}_{side}": [int(row[aspect]) for row in rated]
                    for side, rated in sides.items()
                    for aspect in _ASPECTS
                },
                "metrics": {
                    name: float(value) if value else None
                    for name, value in first.items()
                    if name not in _HAQUE
                },
            }


def shen(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of Shen et al. (2021), from an Excel sheet, with one rating each and some metrics."""
    try:
        import xlrd
    except ImportError:
        raise InputError(f"shen2021_leclair: {missing_package('xlrd', 'train')}") from None
    for file in files:
        sheet = xlrd.open_workbook(file_contents=file.data, logfile=io.StringIO()).sheet_by_index(0)
        header, *rows = (sheet.row_values(number) for number in range(sheet.nrows))
        rows = [dict(zip(header, row, strict=True)) for row in rows]
        # The header is repeated in the middle.
        rows = [row for row in rows if row["human"] != "human"]
        for number, row in enumerate(rows):
            yield {
                "id": number,
                "language": "java",
                "reference": row["ref"],
                "candidate": row["can"],
                "rating": float(row["human"]),
                "ratings": [int(row["human"])],
                "fid": str(int(row["id"])),
                "code": row["code"],
                "metrics": {name: float(row[name]) for name in _SHEN_METRICS},
            }


def conala_grades(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the generated Python snippets of Evtikhiev et al. (2023), with the grades that people gave."""
    for file in files:
        for number, item in enumerate(file.json()):
            systems = [key.removeprefix("grade-") for key in item if key.startswith("grade-")]
            for system in systems:
                # The reference has grades, too.
                if system == "snippet":
                    continue
                yield {
                    "id": f"{number}/{system}",
                    "reference": item["snippet"][0],
                    "candidate": item[system],
                    "language": "python",
                    "system": system,
                    "ratings": item[f"grade-{system}"],
                }
