"""Replies of the model, from the endpoint or from records: a reply is on the disk before it is used."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import reading
from simllm.llm.endpoint import (
    ChatClient,
    ChatReply,
    Message,
    RawReply,
    make_request,
    parse_reply,
    request_key,
)
from simllm.llm.limits import RequestBudget
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
        request, item, body = (reading.text_under(row, name, where) for name in ("request", "item", "body"))
        numbers = [
            reading.value_under(row, name, where, "a number") for name in ("attempt", "round", "status")
        ]
        # Not isinstance, because True and False are instances of int.
        if not all(type(number) is int for number in numbers):
            raise InputError(f"{where}: attempt, round and status must be whole numbers")
        attempt, round_, status = numbers
        found[ReplyPlace(request, item, attempt, round_)] = RawReply(status, body)
    return found


class Replies:
    """Provider of replies: a recorded reply if there is one, otherwise a reply from the endpoint.

    `client` and `records`, to which new replies are added, are None if only recorded replies are used.

    Attributes:
        stopped: A threading event; after it is set, no more requests are sent.
    """

    def __init__(
        self,
        model: str,
        known: Mapping[ReplyPlace, RawReply],
        budget: RequestBudget,
        client: ChatClient | None = None,
        records: ReplyRecords | None = None,
    ) -> None:
        self._model, self._known, self._budget = model, known, budget
        self._client, self._records = client, records
        self.stopped = threading.Event()

    def ask(self, messages: Sequence[Message], item: str, attempt: int, round_: int) -> ChatReply:
        """Return the reply to a conversation, whose last messages are those of this round.

        Raises:
            LostReplyError: The endpoint sent no reply; or no more requests may be sent, because the run has
                stopped or the largest cost is reached.
            InputError: The endpoint refuses all requests; or there is no endpoint, and no recorded reply.
        """
        request = make_request(self._model, messages)
        # The hash alone is not enough: attempts at an item begin with the same request and need replies of
        # their own.
        place = ReplyPlace(request_key(request), item, attempt, round_)
        if place in self._known:
            return parse_reply(self._known[place])
        if self._client is None or self._records is None:
            raise InputError(f"the records have no reply to {place}")
        self._budget.wait(self.stopped)
        raw = self._client.ask(request)
        reply = parse_reply(raw)  # before it is recorded: a reply that cannot be parsed is not recorded
        self._records.keep(place, raw)
        self._budget.spend(reply)
        return reply

    def stop(self) -> None:
        """Stop sending requests, and cancel the requests that still wait for a reply."""
        self.stopped.set()
        if self._client is not None:
            self._client.close()
