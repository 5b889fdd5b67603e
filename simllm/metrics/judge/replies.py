"""The replies of a judge: those in its cache, and those that its endpoint must be asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from simllm.errors import InputError, OptionError
from simllm.io import output_file
from simllm.io.tables import on_one_line
from simllm.llm.answers import find_label
from simllm.llm.records import ReplyRecord, Slot
from simllm.llm.reply import Reply
from simllm.llm.session import Question, Session
from simllm.metrics.judge.settings import Judge

_SHOWN = 60  # characters of an unreadable reply in a warning


@dataclass(frozen=True)
class Replies:
    """Replies to n prompts.

    Attributes:
        values: For each prompt, the scores or labels in its replies; None for a reply without one.
        facts: The number of requests, of those now sent, of tokens, and the cost, by name.
        warnings: Messages on failed, cut and unreadable replies.
    """

    values: list[list[Any]]
    facts: Mapping[str, Any]
    warnings: tuple[str, ...]


def ask(judge: Judge, prompts: Sequence[str], read: Callable[[Reply], Any], kind: str) -> Replies:
    """Ask a judge, and read what its replies say; `kind` is for warnings, as in "without KIND".

    Equal prompts are asked once. A reply in the cache is never asked for again, so that no network is needed
    if all replies are there.

    Raises:
        LostReplyError: Replies are missing. The others are in the cache.
        InputError: The endpoint refuses all requests, or the cache cannot be used.
    """
    samples = judge.settings.samples
    # The slots have no item: equal prompts share their replies, whichever pairs they are for.
    questions = {
        prompt: [Question(prompt, Slot(sample=number)) for number in range(1, samples + 1)]
        for prompt in dict.fromkeys(prompts)
    }
    every = [question for own in questions.values() for question in own]
    replies, asked = _replies(judge, every)
    values = {prompt: [read(replies[question]) for question in own] for prompt, own in questions.items()}
    facts = _facts(judge, [replies[question] for question in every], asked)
    found = [(replies[question], read(replies[question])) for question in every]
    return Replies([values[prompt] for prompt in prompts], facts, tuple(_warnings(judge, found, kind)))


def _replies(judge: Judge, questions: Sequence[Question]) -> tuple[dict[Question, Reply], int]:
    """Return the replies to all questions, and how many of them the endpoint gave now."""
    replies = _known(judge, questions)
    missing = [question for question in questions if question not in replies]
    if not missing:
        return replies, 0
    if judge.settings.cache is None:
        judge.cache.parent.mkdir(parents=True, exist_ok=True)
    cache = output_file.real(judge.cache)
    if not cache.parent.is_dir():
        raise InputError(f"{judge.cache}: cannot be written (no such folder)")
    with contextlib.ExitStack() as held:
        # Two processes that append to one file would cut each other's lines.
        held.enter_context(output_file.locked(cache))
        record = held.enter_context(contextlib.closing(ReplyRecord(judge.cache)))
        session = held.enter_context(_session(judge, record))
        arriving = held.enter_context(contextlib.closing(session.ask_all(missing)))
        try:
            # No bar in a pipe or file (`disable=None`).
            for question, reply in tqdm(arriving, total=len(missing), unit=" replies", disable=None):
                replies[question] = reply
        except OptionError as error:  # of the endpoint: what it cannot do
            raise InputError(f"{judge.file}: {error.with_flags({'logprobs': 'expectation'})}") from None
        session.check_complete()
        return replies, session.asked


def _known(judge: Judge, questions: Sequence[Question]) -> dict[Question, Reply]:
    """Return the replies in the cache, which is only read and needs no lock, but for failures to retry."""
    if not judge.cache.exists():
        return {}
    with (
        contextlib.closing(ReplyRecord(judge.cache)) as record,
        _session(judge, record, is_replay=True) as session,
    ):
        found = {question: session.find(question) for question in questions}
    again = judge.settings.retry_failed
    return {one: reply for one, reply in found.items() if reply and not (again and reply.failure)}


def _session(judge: Judge, record: ReplyRecord, is_replay: bool = False) -> Session:
    chosen = judge.settings
    steps = chosen.steps
    try:
        return Session(
            chosen,
            record,
            labels=tuple(steps.steps) if chosen.expectation else (),
            logprobs=chosen.expectation,
            find_label=steps.find_step if chosen.expectation else find_label,
            retries_failed=chosen.retry_failed,
            is_replay=is_replay,
        )
    except OptionError as error:
        raise InputError(f"{judge.file}: {error}") from None


def _facts(judge: Judge, replies: Sequence[Reply], asked: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"requests": len(replies), "requests sent now": asked}
    for name in ("prompt_tokens", "completion_tokens"):
        counts = [getattr(reply, name) for reply in replies]
        facts[name.replace("_", " ")] = None if None in counts else sum(counts)
    if (price := judge.settings.price) is not None:
        costs = [price.of(reply.prompt_tokens, reply.completion_tokens) for reply in replies]
        facts["cost"] = None if None in costs else sum(cost or 0.0 for cost in costs)
    return facts


def _warnings(judge: Judge, found: Sequence[tuple[Reply, Any]], kind: str) -> list[str]:
    name = f"judge={judge.file}"
    failed = [reply for reply, _ in found if reply.text is None]
    unread = [reply for reply, value in found if reply.text is not None and value is None]
    messages = []
    if failed:
        message = f"{len(failed):,} of {len(found):,} requests failed for good ({failed[0].failure})"
        messages.append(f"{name}: {message}")
    if unread:
        text = on_one_line(unread[0].text or "")
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        cut = sum(reply.finish_reason == "length" for reply in unread)
        more = f"; {cut:,} are cut off at the largest number of tokens" if cut else ""
        message = f'{len(unread):,} of {len(found):,} replies are without {kind}, such as "{shown}"{more}'
        messages.append(f"{name}: {message}")
    return messages
