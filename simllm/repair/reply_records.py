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
    """The key under which a model's reply is recorded: the request, and the place of the reply in the run.

    Attributes:
        request: The hash of the request: the SHA-256 of its JSON with sorted keys.
        item: The id of the item: the program that the model repairs, or the code that it summarizes.
        attempt: The number of the attempt at this item, from 1.
        round: The number of the round (request) in this attempt, from 1.
    """

    request: str
    item: str
    attempt: int
    round: int

    def __str__(self) -> str:
        return f"item {self.item}, attempt {self.attempt}, round {self.round}"


class ReplyRecords:
    """The record of a model's replies in a run, stored in the file `replies.jsonl`.

    In a run, the model repairs programs or summarizes code.

    Args:
        folder: The folder of the run.

    Attributes:
        known: A dict with all recorded replies. The key of a reply has the hash of the request, the id of the
            program or code, the number of the attempt, and the number of the round (request).

    Raises:
        InputError: The records are damaged, or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._log = JsonLinesLog(folder, NAME, is_synced=True)
        self.known = _by_place(self._log.rows)

    def keep(self, place: ReplyPlace, raw: RawReply) -> None:
        """Add a model's reply to the record, and wait until the reply is on the disk.

        Args:
            place: The key of the reply. It has the hash of the request, the id of the program or code that
                the model works on, the number of the attempt, and the number of the round (request).
            raw: The reply of the model's server, before the reply is parsed.
        """
        self._log.append({**vars(place), **vars(raw)})
        self.known[place] = raw

    def close(self) -> None:
        """Close the file `replies.jsonl`, in which the replies are recorded."""
        self._log.close()


def read_records(run: Path) -> Mapping[ReplyPlace, RawReply]:
    """Read the replies that a model gave in an earlier run, from the folder of this run.

    In a run, the model repairs programs or summarizes code.

    Args:
        run: The folder of the run.

    Returns:
        A dict with the replies. The key of a reply has the hash of the request, the id of the program or
        code, the number of the attempt, and the number of the round (request).

    Raises:
        InputError: The folder has no record of replies, or the record is damaged.
    """
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
        if not all(type(number) is int for number in numbers):
            raise InputError(f"{where}: attempt, round and status must be whole numbers")
        attempt, round_, status = numbers
        found[ReplyPlace(request, item, attempt, round_)] = RawReply(status, body)
    return found
