"""Readers of text pairs without ratings: human paraphrases, and references with generated summaries.

A reader is a function that converts fetched files into rows (JSON objects). A row has two texts about code.
Paraphrases have the keys `a` and `b`. In the other rows, the key `candidate` has a generated summary or
commit message, and the key `reference` has the text that a person wrote for the same code or commit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import combinations

from train.data.parse_fetched_file import Row, SourceFile

_MOST = 5  # descriptions of one command that are paired with each other
_LONGEST = 120  # characters of a command in the name of its group


def descriptions_by_id(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield all pairs of texts that describe the same code in the data set CodeNN.

    A line of the files has an id, a tab and a text. Texts with the same id describe the same code. A row has
    two such texts, `a` and `b`, and a name for the code as `group`.
    """
    for file in files:
        groups: dict[str, list[str]] = {}
        for identifier, text in file.columns():
            groups.setdefault(identifier, []).append(text.strip())
        language = file.path.parts[-3]
        for identifier, texts in groups.items():
            for a, b in combinations(texts, 2):
                yield {"group": f"codenn-{language}-{identifier}", "a": a, "b": b}


def descriptions_by_command(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of descriptions of the same shell command, from the data set nl2bash.

    Line i of the first file describes the command in line i of the second file. If a command has more than
    five distinct descriptions, only the first five are paired. A row has two descriptions of one command, `a`
    and `b`, and a name for the command as `group`. The name is "nl2bash-" and the beginning of the command.
    """
    descriptions, commands = (file.lines() for file in files)
    groups: dict[str, dict[str, None]] = {}
    for text, command in zip(descriptions, commands, strict=True):
        groups.setdefault(command.strip(), {}).setdefault(text.strip())
    for command, texts in groups.items():
        for a, b in combinations(list(texts)[:_MOST], 2):
            yield {"group": f"nl2bash-{command[:_LONGEST]}", "a": a, "b": b}


def rewritten_intents(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of a question about code and the same question reworded by people, from CoNaLa.

    A row has the question `a`, the reworded question `b`, and a name for the question as `group`. Questions
    that were not reworded are left out.
    """
    for file in files:
        for item in file.json():
            a, b = item["intent"].strip(), (item["rewritten_intent"] or "").strip()
            if b and a != b:
                yield {"group": f"conala-{item['question_id']}", "a": a, "b": b}


def generated_summaries(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of a reference and a generated summary from the repository CodeSumEvaluation.

    A file `test.pred` has the summaries that a model generated. The file `test.gold` in the same folder has
    the references. If this folder has no `test.gold`, the one in the closest folder above is used. Line i of
    both files is a pair. A row has the `reference`, the generated summary (`candidate`), and the names of the
    `dataset` and the `model`.
    """
    files = list(files)
    golds = {file.path.parent: file.lines() for file in files if file.path.name == "test.gold"}
    for file in files:
        if file.path.name == "test.pred":
            gold = next(golds[folder] for folder in file.path.parents if folder in golds)
            dataset, model = file.path.parts[2:4]
            for reference, candidate in zip(gold, file.lines(), strict=True):
                yield {"dataset": dataset, "model": model, "reference": reference, "candidate": candidate}


def commit_messages(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of a human and a generated commit message from the repository CommitMsgEmpirical.

    A row has the human message (`reference`) and the generated message (`candidate`), but no rating.
    """
    for file in files:
        for row in csv.DictReader(io.StringIO(file.text, newline="")):
            yield {"reference": row["Reference"], "candidate": row["Generation"]}
