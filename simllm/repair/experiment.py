"""A run: all attempts at all items, with everything recorded that is needed to resume or to replay it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from simllm.code.clang_trees import check_clang
from simllm.errors import InputError, OptionError
from simllm.execution.output_comparison import comparison
from simllm.execution.sandbox import Sandbox
from simllm.execution.watchdog import as_ended
from simllm.io import output_file
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.llm.limits import read_price
from simllm.llm.model import Model, Sampling
from simllm.llm.records import KeptValues, ReplyRecord, add_to_folder
from simllm.llm.session import Session
from simllm.metrics import registry
from simllm.metrics.cache import CachedMetric
from simllm.metrics.interface import Metric
from simllm.repair.conversation import Conversation
from simllm.repair.items import RepairItem, drop_duplicates, read_items
from simllm.repair.judges import ProgramJudge, ReplyJudge, SummaryJudge
from simllm.repair.results import RESULTS, AttemptResult, measure_patches, to_json_lines
from simllm.repair.settings import (
    CONTENT,
    REPLIES,
    SETTINGS,
    FilePath,
    RunOptions,
    RunSettings,
    has_begun,
    own_folder,
    read_settings,
)
from simllm.repair.strategies import PROMPT_SETS, Prompts, check_messages, load_prompts, load_strategy
from simllm.repair.summary import SUMMARY, summarize, to_json

VERDICTS, PATCHES = "verdicts.jsonl", "patches.jsonl"


def run(
    items: FilePath,
    output: FilePath,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> dict[str, Any]:
    """Run an experiment in which a language model repairs programs or summarizes code; write it into a
    folder.

    The API key comes from the environment variable OPENAI_API_KEY. All replies are recorded. The same call
    resumes a stopped run and reuses the recorded replies.

    Args:
        items: A file of JSON lines with the items: incorrect programs with tests, or code to summarize.
        output: The folder of the run.
        progress: A function that is called after each attempt with the numbers of done and of all attempts.
        **options: The fields of `simllm.repair.RunOptions`, such as `model` and `strategy`.

    Returns:
        The content of `summary.json`, such as pass rates and costs. The key "complete" tells whether all
        attempts are finished.

    Raises:
        InputError: An option or a file is wrong, the sandbox does not isolate programs, the endpoint refuses
            all requests, or the run in `replay` has no reply to a request.
    """
    return run_with(Path(items), Path(output), RunOptions(**options), progress)


def run_with(
    items: Path, output: Path, options: RunOptions, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Run an experiment as `run` does, with its options in one object."""
    replay = None if options.replay is None else Path(options.replay)
    settings = _settings(options, None if replay is None else read_settings(replay))
    if settings.judge is not None and registry.is_code_metric(settings.judge):
        raise OptionError(
            "{judge} {metric}: a metric for code; {judge} is for summaries. Programs are judged by their "
            "tests, without {judge}",
            metric=settings.judge,
        )
    # Only for its checks: a wrong rule is an error before any file is read.
    comparison(settings.compare)
    OutputFolder(output).check_apart([items, *([replay] if replay else [])])
    rows = read_items(items, settings.judge is not None)
    if settings.trees == "libclang":
        _check_clang(rows)
    kept, dropped = drop_duplicates(rows)
    return _run_items(kept, dropped, settings, options, output, progress)


def _check_clang(items: Sequence[RepairItem]) -> None:
    """Check before the first request that libclang can measure the patches of all items."""
    if others := [item for item in items if item.language != "cpp"]:
        message = "{trees} libclang measures C++ alone; item {item} has the language {language}"
        raise OptionError(message, item=others[0].id, language=others[0].language or "(none)")
    check_clang()


def _settings(options: RunOptions, recorded: RunSettings | None) -> RunSettings:
    """Make the settings of a run; what is not given comes from the `recorded` run, if it is a replay."""
    names = {one.name for one in fields(RunSettings)}
    given = {name: value for name, value in vars(options).items() if name in names and value is not None}
    if isinstance(options.parts, str):
        given["parts"] = (options.parts,)
    elif options.parts is not None:
        given["parts"] = tuple(dict.fromkeys(options.parts))
    if options.prompts is not None or recorded is None:
        folder = None if options.prompts is None else Path(options.prompts)
        given["prompts"] = dict(load_prompts(folder).texts)
        given["prompt_set"] = str(folder) if str(folder) in PROMPT_SETS else None
    if recorded is None:
        if options.model is None:
            raise OptionError("expected {model} NAME: the name of the model at the endpoint")
        settings = RunSettings(**given)
    else:
        # The folder of a run may come from somebody else. It must neither choose a file that is loaded as a
        # metric nor switch the sandbox off; only the caller may.
        if recorded.judge and "=" in recorded.judge and options.judge is None:
            message = "the run is judged by {metric}; to read this file or folder, give {judge} {metric}"
            raise OptionError(message, metric=recorded.judge)
        if recorded.unsafe and not options.unsafe:
            raise OptionError("the run was made with {unsafe}; a replay needs {unsafe}, too")
        settings = replace(recorded, **given)
    if options.prices is not None:
        settings = replace(settings, price=read_price(Path(options.prices), settings.model))
    return settings


def _run_items(
    items: list[RepairItem],
    dropped: Mapping[str, str],
    settings: RunSettings,
    options: RunOptions,
    folder: Path,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Run, or resume, all attempts at all items; write the results into a folder and return the summary.

    `dropped` has the ids of dropped items and of the equal ones that were kept. `progress` is called after
    each attempt with the numbers of done and of all attempts.
    """
    replay = None if options.replay is None else Path(options.replay)
    prompts = Prompts(settings.prompts)
    try:
        prompts.check()
    except InputError as error:
        # A replay has the templates from the settings of the earlier run, so that the message names that
        # file.
        raise InputError(f"{replay / SETTINGS}: {error}" if replay else str(error)) from None
    is_summary = settings.judge is not None
    rounds = load_strategy(prompts, settings.strategy, settings.parts, settings.rounds, is_summary)
    is_new = not has_begun(folder)
    if is_new:
        # Templates of a run that has begun were checked at its start; rendering them for all items again
        # would only delay the resumed run.
        bar = settings.bar if is_summary else None
        check_messages(prompts, rounds, items, bar, settings.shows_output)
    recorded: ReplyRecord | None = None
    if replay:
        if not (replay / REPLIES).is_file():
            raise InputError(f"{replay / REPLIES}: does not exist; expected the folder of a run")
        recorded = ReplyRecord(replay / REPLIES, reads_only=True)
    model = _model(settings, options)
    OutputFolder(folder, CONTENT).check()
    with contextlib.ExitStack() as held:
        if recorded is None and is_new:
            with Session(model, ReplyRecord()) as first:
                first.reach()  # before the folder is made
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
            held.enter_context(contextlib.closing(KeptValues(folder, name, replay)))
            for name in (VERDICTS, PATCHES)
        )
        judge, about = _make_judge(items, settings, tester, verdicts)
        record = recorded or ReplyRecord(add_to_folder(folder, REPLIES))
        held.enter_context(contextlib.closing(record))
        session = held.enter_context(Session(model, record, is_replay=recorded is not None))
        conversation = Conversation(rounds, prompts, session.ask, judge)

        def stop() -> None:
            session.stop()
            if isinstance(tester, Sandbox):
                tester.close()

        attempts = _hold_all(conversation, items, settings.attempts, options.parallel, stop, progress)
        attempts = [
            measure_patches(attempt, item, patches, settings.trees)
            for attempt, item in _with_items(attempts, items)
        ]
        OutputFolder(folder).write(RESULTS, to_json_lines(attempts))
        summary = summarize(attempts, items, settings, len(rounds), about, dropped)
        OutputFolder(folder).write(SUMMARY, to_json(summary))
    return summary


def _model(settings: RunSettings, options: RunOptions) -> Model:
    return Model(
        base_url=options.base_url,
        model=settings.model,
        **{one.name: getattr(settings, one.name) for one in fields(Sampling)},
        parallel=options.parallel,
        retries=5 if options.retries is None else options.retries,
        rate=options.rate,
        price=settings.price,
        max_cost=options.max_cost,
    )


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
            next((future for future in as_ended(futures) if future.exception()), None)
            for future in futures:  # the first error in order, so that it does not depend on the threads
                if future.done():
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
