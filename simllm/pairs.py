"""Reads candidate/reference pairs from files."""

from __future__ import annotations

from pathlib import Path

from simllm import files
from simllm.errors import InputError


def from_files(candidates: Path, references: Path) -> tuple[list[str], list[str]]:
    """Read two text files, one text a line; raise InputError where their lengths differ."""
    texts = _texts(candidates), _texts(references)
    if len(texts[0]) != len(texts[1]):
        raise InputError(f"{candidates} has {len(texts[0])} lines but {references} has {len(texts[1])}")
    return texts


def from_jsonl(file: Path, candidate_field: str, reference_field: str) -> tuple[list[str], list[str]]:
    """Read the two named text fields of every line of a JSON-lines file."""
    candidates, references = [], []
    for where, row in files.objects(file):
        candidates.append(files.text_under(row, candidate_field, where))
        references.append(files.text_under(row, reference_field, where))
    if not candidates:
        raise InputError(f"{file}: empty; expected a JSON object a line")
    return candidates, references


def _texts(file: Path) -> list[str]:
    texts = [line for _, line in files.lines(file)]
    if not texts:
        raise InputError(f"{file}: empty; expected one text a line")
    return texts
