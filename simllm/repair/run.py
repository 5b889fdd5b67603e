"""A run: all attempts at all items, with everything recorded that is needed to resume or to replay it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.execution.output_comparison import comparison
from simllm.execution.sandbox import Sandbox
from simllm.io import output_file
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.llm.endpoint import parse_reply
from simllm.llm.limits import RequestBudget, read_price
from simllm.llm.records import KeptValues
from simllm.metrics import registry
from simllm.metrics.cache import CachedMetric
from simllm.metrics.interface import Metric
from simllm.repair.conversation import Conversation
from simllm.repair.items import RepairItem, read_items
from simllm.repair.judges import ProgramJudge, ReplyJudge, SummaryJudge
from simllm.repair.replies import Replies, ReplyRecords, Source, make_client, read_records
from simllm.repair.results import RESULTS, AttemptResult, measure_patches, to_json_lines
from simllm.repair.settings import CONTENT, SETTINGS, RunSettings, has_begun, own_folder, read_settings
from simllm.repair.strategies import Prompts, check_messages, load_prompts, load_strategy
from simllm.repair.summary import SUMMARY, summarize, to_json

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
        held.enter_context(locked(output_file.real(folder)))
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


FilePath = str | os.PathLike[str]


def run(
    items: FilePath,
    output: FilePath,
    *,
    model: str | None = None,
    base_url: str | None = None,
    strategy: str | None = None,
    parts: str | Sequence[str] | None = None,
    attempts: int | None = None,
    rounds: int | None = None,
    prompts: FilePath | None = None,
    shows_output: bool | None = None,
    compare: str | None = None,
    judge: str | None = None,
    bar: float | None = None,
    prices: FilePath | None = None,
    max_cost: float | None = None,
    parallel: int = 1,
    rate: float | None = None,
    retries: int | None = None,
    replay: FilePath | None = None,
    unsafe: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Run an experiment in which a language model repairs programs or summarizes code; write it into a
    folder.

    The API key comes from the environment variable OPENAI_API_KEY. All replies are recorded. The same call
    resumes a stopped run and reuses the recorded replies.

    Args:
        items: A file of JSON lines with the items: incorrect programs with tests, or code to summarize.
        output: The folder of the run.
        model: The name of the model at the endpoint.
        base_url: The address of the endpoint, such as "http://localhost:8000/v1"; by default, the value of
            the environment variable OPENAI_BASE_URL.
        strategy: "single" (one request), "multi-regenerate" (a new conversation in each round) or "cref" (one
            conversation over all rounds), which is the default.
        parts: The help that the strategy "single" gives the model: any of "guidance" (a tutor's hint),
            "solution" (a description of a solution) and "tests" (the failed tests).
        attempts: The number of attempts at each item; default: 5.
        rounds: The largest number of rounds in an attempt; by default, as many as the strategy has.
        prompts: A folder with templates that replace the included ones.
        shows_output: Whether the model is shown the actual output of failed tests.
        compare: The rule that compares a program's output with the expected output: "lines" (the default),
            "tokens", "exact" or "float:1e-6" (numbers may have an error of up to 1e-6).
        judge: The name of a metric that judges summaries; None if the items are programs.
        bar: The lowest score of an accepted summary.
        prices: A JSON file with the prices of a million tokens of requests ("input") and of replies
            ("output"). For a model M, it is, for example, `{"M": {"input": 3, "output": 15}}`.
        max_cost: The total cost, in the currency of `prices`, after which no more requests are sent.
        parallel: The number of attempts at the same time.
        rate: The largest number of requests in a minute.
        retries: The largest number of times that a failed request is repeated; default: 5.
        replay: The folder of an earlier run, whose recorded replies replace an endpoint. Its settings are
            used, too, except those that are given here. `model` and the settings of requests (`base_url`,
            `rate`, `retries` and `max_cost`) cannot be given.
        unsafe: Whether programs run without the sandbox.
        progress: A function that is called after each attempt with the numbers of done and of all attempts.

    Returns:
        The content of `summary.json`, such as pass rates and costs. The key "complete" tells whether all
        attempts are finished.

    Raises:
        InputError: An option or a file is wrong, the sandbox does not isolate programs, the endpoint refuses
            all requests, or the run in `replay` has no reply to a request.
    """
    if replay is not None:
        for name, value in (
            ("--base-url", base_url),
            ("--model", model),
            ("--rate", rate),
            ("--retries", retries),
            ("--max-cost", max_cost),
        ):
            if value is not None:
                raise InputError(f"{name} goes with an endpoint; --replay uses recorded replies")
    recorded = read_settings(Path(replay)) if replay is not None else None
    given: dict[str, Any] = {
        "model": model,
        "strategy": strategy,
        "parts": None
        if parts is None
        else (parts,)
        if isinstance(parts, str)
        else tuple(dict.fromkeys(parts)),
        "attempts": attempts,
        "rounds": rounds,
        "shows_output": shows_output,
        "compare": compare,
        "judge": judge,
        "bar": bar,
        "prompts": dict(load_prompts(None if prompts is None else Path(prompts)).texts)
        if prompts is not None or recorded is None
        else None,
    }
    given = {name: value for name, value in given.items() if value is not None} | {"unsafe": unsafe}
    settings = _settings(given, recorded)
    if settings.judge is not None and registry.is_code_metric(settings.judge):
        raise InputError(
            f"--judge {settings.judge}: a metric for code; --judge is for summaries. Programs are judged by "
            "their tests, without --judge"
        )
    if prices is not None:
        settings = replace(settings, price=read_price(Path(prices), settings.model))
    # Only for its checks: a wrong rule is an error before any file is read.
    comparison(settings.compare)
    source = Source(
        base_url,
        5 if retries is None else retries,
        parallel,
        rate,
        max_cost,
        None if replay is None else Path(replay),
    )
    folder = Path(output)
    OutputFolder(folder).check_apart([Path(items), *([Path(replay)] if replay is not None else [])])
    rows = read_items(Path(items), settings.judge is not None)
    return run_items(rows, settings, source, folder, progress)


def _settings(given: dict[str, Any], recorded: RunSettings | None) -> RunSettings:
    """Make the settings of a run; what is not `given` comes from the `recorded` run, if it is a replay."""
    if recorded is None:
        if "model" not in given:
            raise InputError("expected --model NAME: the name of the model at the endpoint")
        return RunSettings(**given)
    # The folder of a run may come from somebody else. It must neither choose a file that is loaded as a
    # metric nor switch the sandbox off; only the caller may.
    if recorded.judge and "=" in recorded.judge and "judge" not in given:
        judge = recorded.judge
        raise InputError(f"the run is judged by {judge}; to read this file or folder, give --judge {judge}")
    if recorded.unsafe and not given["unsafe"]:
        raise InputError("the run was made with --unsafe; a replay needs --unsafe, too")
    return RunSettings(**{field.name: getattr(recorded, field.name) for field in fields(recorded)} | given)
