"""Questions to a model: each is answered by the record of replies or by the endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from simllm.errors import InputError, OptionError
from simllm.llm.answers import FindLabel, find_label, places_of_label
from simllm.llm.endpoint import EndpointClient, LostReplyError, RefusedRequestError, StoppedError
from simllm.llm.limits import RequestBudget
from simllm.llm.model import Message, Model, without_text
from simllm.llm.records import ReplyRecord, Slot
from simllm.llm.reply import Reply, from_row, parse_reply

_MOST_LOST = 10  # replies in a row; then the endpoint counts as lost


@dataclass(frozen=True, eq=False)
class Question:
    """A prompt (a user's message, or what is continued) or a conversation, and the slot of its reply."""

    prompt: str | Sequence[Message]
    slot: Slot = field(default_factory=Slot)


class Session:
    """Questions to one model during a `with` block. Several threads may ask at the same time.

    A recorded reply is never asked for again, except for failures with `retries_failed`. If the record only
    reads, there is no endpoint: a missing reply is an `InputError`.

    Args:
        labels: With `logprobs`, the labels whose log-probabilities are recorded with a reply.
        find_label: The function that finds the label in an answer.

    Attributes:
        asked: The number of replies that the endpoint gave.
        lost: The reasons why replies are missing, after `ask_all`.
    """

    def __init__(
        self,
        model: Model,
        record: ReplyRecord,
        *,
        labels: Sequence[str] = (),
        logprobs: bool = False,
        find_label: FindLabel = find_label,
        retries_failed: bool = False,
        is_replay: bool = False,
    ) -> None:
        self.model, self.record = model, record
        self._labels, self._logprobs, self._retries_failed = tuple(labels), logprobs, retries_failed
        self._find_label = find_label
        self._budget = RequestBudget(model.price, model.max_cost, model.rate)
        self._stopped = threading.Event()
        self._counting = threading.Lock()
        self._client: EndpointClient | None = None
        self.asked, self.lost = 0, list[str]()
        if not is_replay:
            self._client = EndpointClient(model.base_url, model.retries, model.key_variable)
        # What earlier processes spent counts towards the largest cost, too.
        for row in record.rows():
            self._budget.spend(from_row(row))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def cost(self) -> float | None:
        """The cost of all recorded replies; None if it is not known."""
        return self._budget.cost

    def reach(self) -> None:
        """Raise `InputError` if there is no server at the address."""
        if self._client is not None:
            self._client.reach()

    def stop(self) -> None:
        """Send no more requests, and cancel those that wait for a reply."""
        self._stopped.set()
        if self._client is not None:
            self._client.close()

    def _request(self, question: Question) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the request, and the request as it is recorded."""
        request = self.model.request(question.prompt, question.slot.sample, self._logprobs)
        return request, without_text(request)

    def place_of(self, question: Question) -> tuple[dict[str, Any], Slot]:
        """Return the request as it is recorded, and the slot of the reply."""
        return self._request(question)[1], question.slot

    def row_of(self, question: Question) -> dict[str, Any] | None:
        """Return the recorded row of a question's reply; None if there is none."""
        request, stored = self._request(question)
        return self.record.find(stored, question.slot) or self.record.find_older(request, question.slot)

    def find(self, question: Question) -> Reply | None:
        """Return the recorded reply to a question; None if it must be asked."""
        row = self.row_of(question)
        if row is None:
            return None
        reply = from_row(row)
        return None if self._retries_failed and self._client and reply.failure else reply

    def ask(self, question: Question) -> Reply:
        """Return the reply to a question.

        Raises:
            LostReplyError: The endpoint sent no reply; or no more requests may be sent (`StoppedError`).
            InputError: The endpoint refuses all requests; or there is no endpoint, and no recorded reply.
        """
        if (known := self.find(question)) is not None:
            return known
        reply = self._fetch(question)
        self.record.keep(*self.place_of(question), reply)
        return reply

    def _fetch(self, question: Question) -> Reply:
        """Return the reply of the endpoint, which is not on record yet."""
        request = self._request(question)[0]
        if self._client is None:
            raise InputError(
                f"{self.record.file}: has no reply to this request ({question.slot}); other items, "
                "prompts or options ask for other replies"
            )
        self._budget.wait(self._stopped)
        begun = time.monotonic()
        try:
            reply = parse_reply(self._client.ask(request))
        except RefusedRequestError as error:
            reply = Reply(None, failure=str(error))
        reply = replace(self._with_label(reply), seconds=round(time.monotonic() - begun, 3))
        self._budget.spend(reply)
        with self._counting:
            self.asked += 1
        return reply

    def _with_label(self, reply: Reply) -> Reply:
        """Leave only the places that the probabilities of labels need: all places would fill the disk."""
        # Servers send no log-probabilities with an empty reply: its item must not end the run.
        if not self._logprobs or not reply.text:
            return replace(reply, places=None)
        if reply.places is None:
            message = "{logprobs}: the endpoint sends no log-probabilities; leave it out, or use another"
            raise OptionError(message)
        return replace(
            reply, places=places_of_label(reply.text, reply.places, self._labels, self._find_label)
        )

    def ask_all(self, questions: Iterable[Question]) -> Generator[tuple[Question, Reply]]:
        """Ask independent questions, as many at a time as the model allows; yield each reply as it arrives.

        Failures are replies, too. A lost reply is left out and does not stop the others: `lost` has the
        reason, and a later session asks again. What two sessions lose while the endpoint answers others
        counts as failed.

        Raises:
            LostReplyError: Ten replies in a row were lost, so that the endpoint counts as lost; or a limit is
                reached.
        """
        waiting = dict[tuple[str, Slot], list[Question]]()  # those that share their reply
        for question in questions:
            if (known := self.find(question)) is not None:
                yield question, known
            elif self._client is None:
                self.ask(question)  # raises the error
            else:
                waiting.setdefault(self.record.key(*self.place_of(question)), []).append(question)
        lost = list[tuple[Question, str]]()
        same = {questions[0]: questions for questions in waiting.values()}
        for question, reply in self._ask_waiting([*same]):
            if isinstance(reply, str):
                lost.append((question, reply))
            else:
                yield from ((each, reply) for each in same[question])
        for question, reason in lost:  # only now: the endpoint works, so that the question gets no answer
            place = self.place_of(question)
            if self.record.was_lost(*place):
                # Or no run would ever end without it.
                reply = Reply(None, failure=f"lost twice: {reason}")
                self.record.keep(*place, reply)
                yield from ((each, reply) for each in same[question])
            else:
                self.record.lose(*place, reason)
                self.lost.append(reason)

    def check_complete(self) -> None:
        """Raise `LostReplyError` if `ask_all` lost replies."""
        if self.lost:
            count = f"{len(self.lost):,} {'reply is' if len(self.lost) == 1 else 'replies are'} missing"
            raise LostReplyError(f"{count} ({self.lost[0]})")

    def _ask_waiting(self, questions: Sequence[Question]) -> Generator[tuple[Question, Reply | str]]:
        """Yield each question with its reply, or with the reason why the reply was lost."""
        left, taking, is_over = iter(questions), threading.Lock(), threading.Event()
        lost_in_a_row = list[LostReplyError]()
        # Workers go on while a thread of its own writes: all that arrived meanwhile share one wait for the
        # disk, and no slow user of the replies keeps them from it.
        arrived = SimpleQueue[tuple[Question, Reply | BaseException] | None]()
        results = SimpleQueue[tuple[Question, Reply | BaseException] | None]()

        def work() -> None:
            while not (is_over.is_set() or self._stopped.is_set()):
                with taking:
                    question = next(left, None)
                if question is None:
                    break
                result: Reply | BaseException
                try:
                    result = self._fetch(question)
                except BaseException as error:
                    result = error
                if isinstance(result, LostReplyError) and not isinstance(result, StoppedError):
                    lost_in_a_row.append(result)
                else:
                    lost_in_a_row.clear()
                # No new requests; replies under way may cost money, and are waited for.
                if isinstance(result, StoppedError) or len(lost_in_a_row) >= _MOST_LOST:
                    is_over.set()
                arrived.put((question, result))
            arrived.put(None)

        def write() -> None:
            working = count
            while working:
                batch = [arrived.get()]
                while not arrived.empty():
                    batch.append(arrived.get())
                replies = [(found[0], found[1]) for found in batch if found and isinstance(found[1], Reply)]
                try:
                    self.record.keep_all((*self.place_of(question), reply) for question, reply in replies)
                except BaseException as error:
                    results.put((questions[0], error))
                    return
                for found in batch:
                    results.put(found)
                working -= batch.count(None)

        count = min(self.model.parallel, len(questions))
        threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
        threads.append(threading.Thread(target=write, daemon=True))
        for thread in threads:
            thread.start()
        working = count
        stopped: LostReplyError | None = None
        try:
            while working:
                if (found := results.get()) is None:
                    working -= 1
                    continue
                question, result = found
                if isinstance(result, Reply):
                    yield question, result
                elif isinstance(result, StoppedError):
                    stopped = result
                elif isinstance(result, LostReplyError):
                    yield question, str(result)
                else:
                    raise result
        finally:
            if working:  # after an error or Ctrl+C, or because the caller closes the generator
                self.stop()
            for thread in threads:
                thread.join()
        if stopped:
            raise stopped
        if len(lost_in_a_row) >= _MOST_LOST:
            raise LostReplyError(f"the endpoint is lost: {lost_in_a_row[-1]}")
