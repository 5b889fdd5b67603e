"""A run of repair: several attempts at each item, with a record of all replies.

With the record, a stopped run can be resumed, and a finished run can be replayed without a model.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.execution.sandbox import Sandbox
from simllm.io import files, folders
from simllm.metrics import registry
from simllm.metrics.code.tree_distances import PatchSize, patch_size
from simllm.metrics.score_cache import CachedMetric
from simllm.repair.chat_client import (
    ChatClient,
    ChatReply,
    RawReply,
    make_request,
    parse_reply,
    request_key,
)
from simllm.repair.conversation import Conversation
from simllm.repair.kept_values import KeptValues
from simllm.repair.prompt_texts import Prompts
from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judges import ProgramJudge, ReplyJudge, SummaryJudge
from simllm.repair.reply_records import ReplyPlace, ReplyRecords, read_records
from simllm.repair.request_budget import RequestBudget
from simllm.repair.round_messages import Message
from simllm.repair.run_results import RESULTS, AttemptResult, to_json_lines
from simllm.repair.run_settings import RunSettings, own_folder
from simllm.repair.run_summary import SUMMARY, summarize, to_json
from simllm.repair.strategies import load_strategy

VERDICTS, PATCHES = "verdicts.jsonl", "patches.jsonl"


@dataclass(frozen=True)
class Source:
    """The source of the model's replies: an endpoint, or the record of another run.

    Attributes:
        base_url: The address of the endpoint; None means that of OPENAI_BASE_URL.
        retries: How often a failed request is repeated.
        parallel: The number of attempts at the same time.
        rate: The largest number of requests in a minute; None for no limit.
        most_cost: The cost in all after which no more requests are sent; None for no limit.
        replay: The folder of a run whose replies are used, without an endpoint.
    """

    base_url: str | None = None
    retries: int = 5
    parallel: int = 1
    rate: float | None = None
    most_cost: float | None = None
    replay: Path | None = None

    def __post_init__(self) -> None:
        """Check the number of attempts at the same time.

        Raises:
            InputError: It is not positive.
        """
        if self.parallel < 1:
            raise InputError(f"--parallel {self.parallel}: expected a whole number from 1")


def run_items(
    items: list[RepairItem],
    settings: RunSettings,
    source: Source,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Make all attempts at all items, and write the results into a folder.

    If the folder has a part of the same run, the run is resumed: replies on record are not asked for again.

    Args:
        items: The items.
        settings: The settings of the run.
        source: Where replies come from.
        folder: The folder of the run.
        progress: A function that is called after each attempt with the number of attempts that are done and
            the number of all attempts.

    Returns:
        The content of `summary.json`.

    Raises:
        InputError: An option or file is wrong, programs are not contained, the endpoint refuses all
            requests, or a replay lacks a reply.
    """
    prompts = Prompts(settings.prompts)
    prompts.check()
    is_summary = settings.judge is not None
    rounds = load_strategy(prompts, settings.strategy, settings.parts, settings.rounds, is_summary)
    budget = RequestBudget(settings.price, source.most_cost, source.rate)
    known = read_records(source.replay) if source.replay else None
    folders.check(folder)
    with contextlib.ExitStack() as held:
        client = held.enter_context(
            contextlib.nullcontext() if known is not None else contextlib.closing(_client(source))
        )
        sandbox = None if is_summary else held.enter_context(Sandbox(settings.unsafe))
        held.enter_context(files.locked(files.real(folder)))
        own_folder(folder, settings, items)
        verdicts, patches = (
            held.enter_context(contextlib.closing(KeptValues(folder, name, source.replay)))
            for name in (VERDICTS, PATCHES)
        )
        judge, about = _make_judge(items, settings, sandbox, verdicts)
        replies: _Replies
        if client is None:
            replies = _Replies(settings.model, known or {}, budget)
        else:
            records = held.enter_context(contextlib.closing(ReplyRecords(folder)))
            replies = _Replies(settings.model, records.known, budget, client, records)
            for raw in records.known.values():
                budget.spend(parse_reply(raw))
        conversation = Conversation(rounds, prompts, replies.ask, judge)

        def stop() -> None:
            replies.stop()
            if sandbox is not None:
                sandbox.close()

        attempts = _hold_all(conversation, items, settings.attempts, source.parallel, stop, progress)
        attempts = [_measured(attempt, item, patches) for attempt, item in _with_items(attempts, items)]
        folders.add(folder, RESULTS, to_json_lines(attempts))
        summary = summarize(attempts, items, settings, len(rounds), about)
        folders.add(folder, SUMMARY, to_json(summary))
    return summary


def _client(source: Source) -> ChatClient:
    return ChatClient(source.base_url, source.retries)


def _make_judge(
    items: Sequence[RepairItem], settings: RunSettings, sandbox: Sandbox | None, verdicts: KeptValues
) -> tuple[ReplyJudge, dict[str, Any]]:
    """Make the judge of replies, and describe it by facts for the summary of the run."""
    if sandbox is None:
        metric = registry.load(settings.judge or "")
        if isinstance(metric, CachedMetric):  # the scores of the run are kept in its folder
            metric = metric.metric
        judge = SummaryJudge(metric, settings.bar or 0.0, verdicts)
        return judge, {
            "judge": {
                "metric": metric.name,
                "signature": metric.signature,
                "bar": settings.bar,
                "knows the reference": True,
            }
        }
    languages = [item.language or "" for item in items]
    programs = ProgramJudge(sandbox, languages, verdicts, settings.compare, settings.shows_output)
    return programs, {"judge": {"compare": settings.compare, "toolchains": programs.versions}}


class _Replies:
    """The model's replies: taken from the record, or asked of the endpoint and then recorded.

    Attributes:
        stopped: An event; after it is set, no more requests are sent.
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
        """Return the reply to some messages; a new reply is on the disk before it is returned.

        Raises:
            LostReplyError: No reply came.
            InputError: The endpoint refuses all requests, or a replay lacks the reply.
        """
        request = make_request(self._model, messages)
        place = ReplyPlace(request_key(request), item, attempt, round_)
        if place in self._known:
            return parse_reply(self._known[place])
        if self._client is None or self._records is None:
            raise InputError(f"the records have no reply to {place}")
        self._budget.wait(self.stopped)
        raw = self._client.ask(request)
        reply = parse_reply(raw)  # before it is kept: a reply that cannot be read is asked for again
        self._records.keep(place, raw)
        self._budget.spend(reply)
        return reply

    def stop(self) -> None:
        """Send no more requests, and end those that are being sent."""
        self.stopped.set()
        if self._client is not None:
            self._client.close()


def _hold_all(
    conversation: Conversation,
    items: Sequence[RepairItem],
    attempts: int,
    parallel: int,
    stop: Callable[[], None],
    progress: Callable[[int, int], None],
) -> list[AttemptResult]:
    """Make all attempts, several at the same time; return them in order.

    After an error or Ctrl+C, `stop` ends what the attempts wait for.
    """
    tasks = [(item, attempt) for item in items for attempt in range(1, attempts + 1)]
    finished = iter(range(1, len(tasks) + 1))
    with ThreadPoolExecutor(parallel) as pool:
        futures = [pool.submit(conversation.hold, item, attempt) for item, attempt in tasks]
        for future in futures:
            future.add_done_callback(lambda _: progress(next(finished), len(tasks)))
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:  # the first error in order, so that it does not depend on the threads
                if future in done:
                    future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
        return [future.result() for future in futures]


def _with_items(
    attempts: Sequence[AttemptResult], items: Sequence[RepairItem]
) -> Iterator[tuple[AttemptResult, RepairItem]]:
    by_id = {item.id: item for item in items}
    return ((attempt, by_id[attempt.item]) for attempt in attempts)


def _measured(attempt: AttemptResult, item: RepairItem, patches: KeptValues) -> AttemptResult:
    """Add the sizes of the final reply's patch and of the fix to an attempt at a program."""
    if item.reference is not None or attempt.open or not attempt.rounds:
        return attempt
    made = _patch(item, attempt.rounds[-1].code or "", patches)
    return replace(
        attempt, patch=made, fix_patch=None if item.fix is None else _patch(item, item.fix, patches)
    )


def _patch(item: RepairItem, code: str, patches: KeptValues) -> PatchSize | None:
    """Measure the patch from the code of an item to other code; the result is kept."""

    def measure() -> dict[str, int] | None:
        try:
            size = patch_size(item.code, code, item.language or "")
        except TimeoutError:  # the parser gave up
            return None
        return asdict(size) if size else None

    value = patches.get(request_key({"language": item.language, "code": item.code, "other": code}), measure)
    return PatchSize(**value) if value else None
