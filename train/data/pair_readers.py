"""Readers of text pairs without ratings.

Paraphrases are under `a` and `b`. A generated summary or commit message is under `candidate`, and the text
that a person wrote for the same code or commit is under `reference`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import combinations

from train.data.parse_fetched_file import Row, SourceFile

# Descriptions of one command that are paired with each other.
_MOST = 5
# Characters of a command in the name of its group.
_LONGEST = 120


def descriptions_by_id(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield all pairs of texts that describe the same code in CodeNN: lines with the same id, a tab and the
    text.
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
    """Yield pairs of descriptions of the same shell command in nl2bash.

    Line i of the first file describes the command in line i of the second file.
    """
    descriptions, commands = (file.lines() for file in files)
    groups: dict[str, dict[str, None]] = {}
    for text, command in zip(descriptions, commands, strict=True):
        groups.setdefault(command.strip(), {}).setdefault(text.strip())
    for command, texts in groups.items():
        for a, b in combinations(list(texts)[:_MOST], 2):
            yield {"group": f"nl2bash-{command[:_LONGEST]}", "a": a, "b": b}


def rewritten_intents(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of a question and its version reworded by people, from CoNaLa."""
    for file in files:
        for item in file.json():
            a, b = item["intent"].strip(), (item["rewritten_intent"] or "").strip()
            if b and a != b:
                yield {"group": f"conala-{item['question_id']}", "a": a, "b": b}


def generated_summaries(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield references and generated summaries from the repository CodeSumEvaluation.

    `test.pred` has the generated summaries of a model, and `test.gold` in the same folder, or in the closest
    one above that has it, the references.
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
    """Yield human and generated commit messages from the repository CommitMsgEmpirical, without ratings."""
    for file in files:
        for row in csv.DictReader(io.StringIO(file.text, newline="")):
            yield {"reference": row["Reference"], "candidate": row["Generation"]}
