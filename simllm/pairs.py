"""Reads candidate/reference pairs from files; every error names the file and the line."""

from __future__ import annotations

import json
from pathlib import Path

from simllm.errors import InputError


def from_files(candidates: Path, references: Path) -> tuple[list[str], list[str]]:
    """Read two text files, one text a line; raise InputError where their lengths differ."""
    texts = _lines(candidates), _lines(references)
    if len(texts[0]) != len(texts[1]):
        raise InputError(f"{candidates} has {len(texts[0])} lines but {references} has {len(texts[1])}")
    return texts


def from_jsonl(file: Path, candidate_field: str, reference_field: str) -> tuple[list[str], list[str]]:
    """Read the two named text fields of every line of a JSON-lines file."""
    candidates: list[str] = []
    references: list[str] = []
    for number, line in enumerate(_lines(file), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}, line {number}: not JSON ({error})") from None
        for field, texts in ((candidate_field, candidates), (reference_field, references)):
            if not isinstance(row, dict) or not isinstance(row.get(field), str):
                raise InputError(f'{file}, line {number}: expected a text under "{field}"')
            texts.append(row[field])
    return candidates, references


def _lines(file: Path) -> list[str]:
    """The lines of a UTF-8 file, without their ends; a byte-order mark is dropped."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}, line {number}: not UTF-8 ({error.reason})") from None
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":  # what follows the last line's end is no line
        lines.pop()
    if not lines:
        raise InputError(f"{file}: empty; expected one text a line")
    return lines
