"""The record of a model's replies: each reply is written to the disk before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import read_json_lines
from simllm.llm.endpoint import RawReply
from simllm.llm.records import JsonLinesLog, read_log

NAME = "replies.jsonl"


@dataclass(frozen=True)
class ReplyPlace:
    """The key under which a reply is recorded: the request, and the place of the reply in the run.

    Attributes:
        request: The SHA-256 of the request's JSON with sorted keys.
        item: The id of the item.
    """

    request: str
    item: str
    attempt: int
    round: int

    def __str__(self) -> str:
        return f"item {self.item}, attempt {self.attempt}, round {self.round}"


class ReplyRecords:
    """The record of the replies of a run, in the file `replies.jsonl` of its folder.

    Attributes:
        known: All recorded replies.
    """

    def __init__(self, folder: Path) -> None:
        self._log = JsonLinesLog(folder, NAME, is_synced=True)
        self.known = _by_place(self._log.rows)

    def keep(self, place: ReplyPlace, raw: RawReply) -> None:
        """Add a reply, before it is parsed, to the record; wait until the reply is on the disk."""
        self._log.append({**vars(place), **vars(raw)})
        self.known[place] = raw

    def close(self) -> None:
        """Close the file."""
        self._log.close()


def read_records(run: Path) -> Mapping[ReplyPlace, RawReply]:
    """Read the recorded replies of an earlier run from its folder."""
    if not (run / NAME).is_file():
        raise InputError(f"{run / NAME}: does not exist; expected the folder of a run")
    return _by_place(read_log(run / NAME))


def _by_place(rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[ReplyPlace, RawReply]:
    found = {}
    for where, row in rows:
        request, item, body = (
            read_json_lines.text_under(row, name, where) for name in ("request", "item", "body")
        )
        numbers = [
            read_json_lines.value_under(row, name, where, "a number")
            for name in ("attempt", "round", "status")
        ]
        # Not isinstance, because True and False are instances of int.
        if not all(type(number) is int for number in numbers):
            raise InputError(f"{where}: attempt, round and status must be whole numbers")
        attempt, round_, status = numbers
        found[ReplyPlace(request, item, attempt, round_)] = RawReply(status, body)
    return found
