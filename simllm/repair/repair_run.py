"""A run: all attempts at all items, with everything recorded that is needed to resume or to replay it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.execution.sandbox import Sandbox
from simllm.io import real_path
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.llm.endpoint import parse_reply
from simllm.llm.limits import RequestBudget
from simllm.llm.records import KeptValues
from simllm.metrics import registry
from simllm.metrics.metric_interface import Metric
from simllm.metrics.score_cache import CachedMetric
from simllm.repair.ask_or_replay import Replies, Source, make_client
from simllm.repair.attempt_results import RESULTS, AttemptResult, to_json_lines
from simllm.repair.conversation import Conversation
from simllm.repair.patch_sizes_of_attempts import measure_patches
from simllm.repair.prompt_templates import Prompts
from simllm.repair.repair_items import RepairItem
from simllm.repair.repaired_program_judge import ProgramJudge
from simllm.repair.reply_judge_interface import ReplyJudge
from simllm.repair.reply_records import ReplyRecords, read_records
from simllm.repair.round_messages import check_messages
from simllm.repair.run_settings import CONTENT, SETTINGS, RunSettings, has_begun, own_folder
from simllm.repair.run_summary import SUMMARY, summarize, to_json
from simllm.repair.strategy_loading import load_strategy
from simllm.repair.summary_judge import SummaryJudge

VERDICTS, PATCHES = "verdicts.jsonl", "patches.jsonl"


def run_items(
    items: list[RepairItem],
    settings: RunSettings,
    source: Source,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Run, or resume, all attempts at all items; write the results into a folder and return the summary.

    `progress` is called after each attempt with the numbers of done and of all attempts.
    """
    prompts = Prompts(settings.prompts)
    try:
        prompts.check()
    except InputError as error:
        # A replay has the templates from the settings of the earlier run, so that the message names that
        # file.
        raise InputError(f"{source.replay / SETTINGS}: {error}" if source.replay else str(error)) from None
    is_summary = settings.judge is not None
    rounds = load_strategy(prompts, settings.strategy, settings.parts, settings.rounds, is_summary)
    is_new = not has_begun(folder)
    if is_new:
        # Templates of a run that has begun were checked at its start; rendering them for all items again
        # would only delay the resumed run.
        bar = settings.bar if is_summary else None
        check_messages(prompts, rounds, items, bar, settings.shows_output)
    budget = RequestBudget(settings.price, source.most_cost, source.rate)
    known = read_records(source.replay) if source.replay else None
    OutputFolder(folder, CONTENT).check()
    with contextlib.ExitStack() as held:
        client = held.enter_context(
            contextlib.nullcontext() if known is not None else contextlib.closing(make_client(source))
        )
        if client is not None and is_new:
            client.reach()  # before the folder is made
        tester: Sandbox | Metric
        if settings.judge is not None:
            tester = registry.load(settings.judge)
        else:
            tester = held.enter_context(Sandbox(settings.unsafe))
        # Locked before the files in it are read, so that a second process cannot add replies meanwhile; under
        # the real path, so that a link to the folder gives the same lock.
        held.enter_context(locked(real_path.real(folder)))
        own_folder(folder, settings, items)
        verdicts, patches = (
            held.enter_context(contextlib.closing(KeptValues(folder, name, source.replay)))
            for name in (VERDICTS, PATCHES)
        )
        judge, about = _make_judge(items, settings, tester, verdicts)
        replies: Replies
        if client is None:
            replies = Replies(settings.model, known or {}, budget)
        else:
            records = held.enter_context(contextlib.closing(ReplyRecords(folder)))
            replies = Replies(settings.model, records.known, budget, client, records)
            # What earlier processes spent counts towards the largest cost, too.
            for raw in records.known.values():
                budget.spend(parse_reply(raw))
        conversation = Conversation(rounds, prompts, replies.ask, judge)

        def stop() -> None:
            replies.stop()
            if isinstance(tester, Sandbox):
                tester.close()

        attempts = _hold_all(conversation, items, settings.attempts, source.parallel, stop, progress)
        attempts = [measure_patches(attempt, item, patches) for attempt, item in _with_items(attempts, items)]
        OutputFolder(folder).write(RESULTS, to_json_lines(attempts))
        summary = summarize(attempts, items, settings, len(rounds), about)
        OutputFolder(folder).write(SUMMARY, to_json(summary))
    return summary


def _make_judge(
    items: Sequence[RepairItem],
    settings: RunSettings,
    tester: Sandbox | Metric,
    verdicts: KeptValues,
) -> tuple[ReplyJudge, dict[str, Any]]:
    """Make the judge, and its description in `summary.json`.

    `tester` runs programs or scores summaries; `verdicts` caches its results.
    """
    if not isinstance(tester, Sandbox):
        # Scores are cached in the folder of the run instead.
        metric = tester.metric if isinstance(tester, CachedMetric) else tester
        # The settings have a bar whenever they have a judge; the 0.0 is for the type checker alone.
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
    programs = ProgramJudge(tester, languages, verdicts, settings.compare, settings.shows_output)
    return programs, {"judge": {"compare": settings.compare, "toolchains": programs.versions}}


def _hold_all(
    conversation: Conversation,
    items: Sequence[RepairItem],
    attempts: int,
    parallel: int,
    stop: Callable[[], None],
    progress: Callable[[int, int], None],
) -> list[AttemptResult]:
    """Make all attempts, several at the same time; return the results in the order of the items.

    `stop` cancels all requests and programs after an error or Ctrl+C, so that the attempts end at once.
    """
    tasks = [(item, attempt) for item in items for attempt in range(1, attempts + 1)]
    # next() of this iterator is atomic, so that the threads need no lock to count.
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
        # Also for Ctrl+C: without this, leaving the pool waits for all queued attempts.
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
