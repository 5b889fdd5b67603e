"""The Python API for the repair of programs by a language model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.execution.output_comparison import comparison
from simllm.io.output_folder import OutputFolder
from simllm.llm.limits import read_price
from simllm.metrics import registry
from simllm.repair.ask_or_replay import Source
from simllm.repair.prompt_templates import load_prompts
from simllm.repair.repair_items import read_items
from simllm.repair.repair_run import run_items
from simllm.repair.run_settings import RunSettings, read_settings

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
