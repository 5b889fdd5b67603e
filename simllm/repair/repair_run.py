"""A run: a model repairs many programs, with several attempts at each program.

All replies of the model are recorded. Therefore a stopped run can be resumed. A finished run can be repeated
from its recorded replies, without asking the model again.
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
from simllm.io.file_lock import locked
from simllm.metrics import registry
from simllm.metrics.code.tree_distances import PatchSize, patch_size
from simllm.metrics.score_cache import CachedMetric
from simllm.repair.attempt_results import RESULTS, AttemptResult, to_json_lines
from simllm.repair.chat_client import (
    ChatClient,
    ChatReply,
    RawReply,
    make_request,
    parse_reply,
    request_key,
)
from simllm.repair.conversation import Conversation
from simllm.repair.disk_cache import KeptValues
from simllm.repair.prompt_templates import Prompts
from simllm.repair.rate_and_cost_limits import RequestBudget
from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judges import ProgramJudge, ReplyJudge, SummaryJudge
from simllm.repair.reply_records import ReplyPlace, ReplyRecords, read_records
from simllm.repair.round_messages import Message
from simllm.repair.run_settings import CONTENT, RunSettings, own_folder
from simllm.repair.run_summary import SUMMARY, summarize, to_json
from simllm.repair.strategies import load_strategy

VERDICTS, PATCHES = "verdicts.jsonl", "patches.jsonl"


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
        most_cost: The total cost after which no more requests are sent; None for no limit.
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
            InputError: `parallel` is less than 1.
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
    """Let a model make all attempts at all items, and write the results into a folder.

    If the folder has an unfinished run with the same items and settings, that run is resumed, and its
    recorded replies are reused.

    Args:
        items: The items: incorrect programs with tests, or code to summarize.
        settings: The settings of the run, such as the number of attempts at each item.
        source: The source of the model's replies: an endpoint, or an earlier run.
        folder: The folder of the run.
        progress: A function that is called after each attempt with the number of done attempts and the number
            of all attempts.

    Returns:
        The content of `summary.json`, such as pass rates and costs.

    Raises:
        InputError: An option or file is wrong, the sandbox does not isolate programs, the endpoint refuses
            all requests, or replies are taken from an earlier run that lacks the reply to one of the
            requests.
    """
    prompts = Prompts(settings.prompts)
    prompts.check()
    is_summary = settings.judge is not None
    rounds = load_strategy(prompts, settings.strategy, settings.parts, settings.rounds, is_summary)
    budget = RequestBudget(settings.price, source.most_cost, source.rate)
    known = read_records(source.replay) if source.replay else None
    folders.check(folder, CONTENT)
    with contextlib.ExitStack() as held:
        client = held.enter_context(
            contextlib.nullcontext() if known is not None else contextlib.closing(_client(source))
        )
        sandbox = None if is_summary else held.enter_context(Sandbox(settings.unsafe))
        held.enter_context(locked(files.real(folder)))
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
    """Make the judge, which decides whether a reply of the model is accepted.

    Programs are judged by their tests. Summaries of code are judged by the score of a metric.

    Args:
        items: The items: incorrect programs with tests, or code to summarize.
        settings: The settings of the run.
        sandbox: The sandbox in which programs run; None if the items are code to summarize.
        verdicts: The cache of verdicts on programs, or of scores of summaries.

    Returns:
        The judge; and a dict with the one key "judge", whose value describes the judge in `summary.json`.
    """
    if sandbox is None:
        metric = registry.load(settings.judge or "")
        if isinstance(metric, CachedMetric):  # scores are cached in the folder of the run instead
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
    """Provider of a model's replies to requests.

    If the reply to a request is recorded, that reply is used. Otherwise the endpoint is asked.

    Args:
        model: The name of the model.
        known: A dict with the recorded replies. Its keys say to which request, item, attempt and round a
            reply belongs.
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
        """Return the model's reply to messages.

        If the reply is not recorded, ask the endpoint, and record its reply on the disk.

        Args:
            messages: The conversation so far, including the messages of this round.
            item: The id of the item.
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


def _hold_all(
    conversation: Conversation,
    items: Sequence[RepairItem],
    attempts: int,
    parallel: int,
    stop: Callable[[], None],
    progress: Callable[[int, int], None],
) -> list[AttemptResult]:
    """Let the model make all attempts at all items, several at the same time.

    Args:
        conversation: The object whose method `hold` makes one attempt at an item.
        items: The items: incorrect programs with tests, or code to summarize.
        attempts: The number of attempts at each item.
        parallel: The number of attempts that run at the same time.
        stop: A function that is called after an error or Ctrl+C. It cancels all requests and programs, so
            that the attempts end at once.
        progress: A function that is called after each attempt with the number of done attempts and the number
            of all attempts.

    Returns:
        The results of the attempts, in the order of the items; for each item, in the order of the attempts.
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
    """Add the sizes of two patches to the result of an attempt, if it is an attempt to repair a program.

    The first patch turns the incorrect program into the model's final program. The second patch turns the
    incorrect program into the known fix.

    Args:
        attempt: The result of the attempt.
        item: The incorrect program, with the known fix if there is one.
        patches: The cache of patch sizes.

    Returns:
        The result with the sizes. The result of an unfinished attempt, or of an attempt to summarize code, is
        returned unchanged.
    """
    if item.reference is not None or attempt.open or not attempt.rounds:
        return attempt
    made = _patch(item, attempt.rounds[-1].code or "", patches)
    return replace(
        attempt, patch=made, fix_patch=None if item.fix is None else _patch(item, item.fix, patches)
    )


def _patch(item: RepairItem, code: str, patches: KeptValues) -> PatchSize | None:
    """Return the size of the patch that turns an incorrect program into another program.

    The patch is measured on the syntax trees of the two programs: how many nodes are edited, and how many
    nodes the trees have. A size that was measured before is read from the cache.

    Args:
        item: The item, which has the incorrect program.
        code: The other program.
        patches: The cache of patch sizes.

    Returns:
        The size; None if a syntax tree is too large, or parsing takes too long.
    """

    def measure() -> dict[str, int] | None:
        try:
            size = patch_size(item.code, code, item.language or "")
        except TimeoutError:  # the parser gave up
            return None
        return asdict(size) if size else None

    value = patches.get(request_key({"language": item.language, "code": item.code, "other": code}), measure)
    return PatchSize(**value) if value else None
