"""The source of a model's replies: an endpoint, or the recorded replies of an earlier run.

An endpoint is the address at which a server offers a model.
"""

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
    """The source of the model's replies, and limits for the requests.

    The source is an endpoint (the server of a model), or an earlier run whose replies were recorded. In a
    run, the model makes several attempts at each item (program to repair, or code to summarize).

    Attributes:
        base_url: The address of the endpoint; None means the value of the environment variable
            OPENAI_BASE_URL.
        retries: The largest number of times that a failed request is repeated.
        parallel: The number of attempts that run at the same time.
        rate: The largest number of requests in a minute; None for no limit.
        most_cost: The total cost, in the currency of the token prices, after which no more requests are sent;
            None for no limit.
        replay: The folder of a run whose recorded replies are used instead of an endpoint; None for an
            endpoint.
    """

    base_url: str | None = None
    retries: int = 5
    parallel: int = 1
    rate: float | None = None
    most_cost: float | None = None
    replay: Path | None = None

    def __post_init__(self) -> None:
        """Check the number of attempts that run at the same time (`parallel`).

        Raises:
            InputError: `parallel` is less than 1, or more than a thousand.
        """
        if not 1 <= self.parallel <= _MOST_PARALLEL:
            raise InputError(
                f"--parallel {self.parallel}: expected a whole number from 1 to {_MOST_PARALLEL:,}"
            )


def make_client(source: Source) -> ChatClient:
    """Make the client that sends requests to a model's endpoint (the address of its server)."""
    return ChatClient(source.base_url, source.retries)


class Replies:
    """Provider of a model's replies to requests.

    If the reply to a request was recorded earlier, that reply is used. Otherwise the request is sent to the
    endpoint (the server of the model). The model makes several attempts to repair a program or to summarize
    code. An attempt has one or more requests.

    Args:
        model: The name of the model.
        known: A dict with the recorded replies. The key of a reply has the hash of the request, the id of the
            program or code, the number of the attempt, and the number of the round (request).
        budget: The limits for the total cost, and for the number of requests in a minute.
        client: The client of the endpoint; None if only recorded replies are used.
        records: The file to which replies from the endpoint are added; None if only recorded replies are
            used.

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
        """Return the model's reply to the messages of a conversation.

        A recorded reply is reused. If there is none, the endpoint is asked, and its reply is recorded.

        Args:
            messages: The conversation so far, including the messages of this round.
            item: The id of the item: the program to repair, or the code to summarize.
            attempt: The number of the attempt at the item, from 1.
            round_: The number of the round (request) in the attempt, from 1.

        Raises:
            LostReplyError: The endpoint sent no reply; or no more requests may be sent, because the run has
                stopped or the largest cost is reached.
            InputError: The endpoint refuses all requests; or there is no endpoint, and no recorded reply.
        """
        request = make_request(self._model, messages)
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
