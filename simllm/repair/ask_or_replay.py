"""The source of a model's replies: an endpoint, or the recorded replies of an earlier run."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
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
from simllm.repair.reply_records import ReplyPlace, ReplyRecords

_MOST_PARALLEL = 1000


@dataclass(frozen=True)
class Source:
    """The source of the replies, and limits for the requests.

    Attributes:
        base_url: The address of the endpoint; None for the value of the environment variable OPENAI_BASE_URL.
        retries: The largest number of times that a failed request is repeated.
        parallel: The number of attempts at the same time.
        rate: The largest number of requests in a minute; None for no limit.
        most_cost: The total cost, in the currency of the prices, after which no more requests are sent; None
            for no limit.
        replay: The folder of a run whose recorded replies are used; None for an endpoint.
    """

    base_url: str | None = None
    retries: int = 5
    parallel: int = 1
    rate: float | None = None
    most_cost: float | None = None
    replay: Path | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.parallel <= _MOST_PARALLEL:
            raise InputError(
                f"--parallel {self.parallel}: expected a whole number from 1 to {_MOST_PARALLEL:,}"
            )


def make_client(source: Source) -> ChatClient:
    """Make the client of the source's endpoint."""
    return ChatClient(source.base_url, source.retries)


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
