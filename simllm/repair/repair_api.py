"""The Python API of repair."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.execution.output_comparison import comparison
from simllm.io import folders
from simllm.repair.prompt_texts import load_prompts
from simllm.repair.repair_items import read_items
from simllm.repair.repair_run import Source, run_items
from simllm.repair.request_budget import read_price
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
    retries: int = 5,
    replay: FilePath | None = None,
    unsafe: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Let a model repair items in rounds, judge its replies, and write the results into a folder.

    The API key comes from the environment variable OPENAI_API_KEY. The same call resumes a stopped run: it
    asks for no reply that is on record.

    Args:
        items: A file of JSON lines with the items.
        output: The folder of the run.
        model: The name of the model at the endpoint.
        base_url: The address of the endpoint, such as "http://localhost:8000/v1"; default: OPENAI_BASE_URL.
        strategy: "single", "multi-regenerate" or "cref", which is the default.
        parts: What the strategy "single" adds: any of "guidance", "solution" and "tests".
        attempts: The number of attempts at each item; default: 5.
        rounds: The largest number of rounds; default: those of the strategy.
        prompts: A folder with templates in place of the included ones.
        shows_output: Whether the model is shown the actual output of failed tests.
        compare: How outputs are compared: "lines", which is the default, "tokens", "exact" or "float:1e-6".
        judge: The name of a metric that judges summaries; without it, the items are programs.
        bar: The score from which a summary is accepted.
        prices: A JSON file with prices by model, of a million tokens: `{"M": {"input": 3, "output": 15}}`.
        max_cost: The cost after which nothing more is asked.
        parallel: The number of attempts at the same time.
        rate: The most requests a minute.
        retries: How often a failed request is repeated.
        replay: The folder of a run whose replies and settings are used, without an endpoint.
        unsafe: Whether programs run without bubblewrap.
        progress: A function that is called after each attempt with the numbers of done and of all attempts.

    Returns:
        The content of `summary.json`; under "complete", whether all attempts are finished.

    Raises:
        InputError: An option or a file is wrong, programs are not contained, the endpoint refuses all
            requests, or a replay lacks a reply.
    """
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
    if prices is not None:
        settings = replace(settings, price=read_price(Path(prices), settings.model))
    comparison(settings.compare)
    source = Source(base_url, retries, parallel, rate, max_cost, None if replay is None else Path(replay))
    folder = Path(output)
    folders.check_apart(folder, [Path(items), *([Path(replay)] if replay is not None else [])])
    rows = read_items(Path(items), settings.judge is not None)
    return run_items(rows, settings, source, folder, progress)


def _settings(given: dict[str, Any], recorded: RunSettings | None) -> RunSettings:
    """Combine the given settings with those of a run that is replayed."""
    if recorded is None:
        if "model" not in given:
            raise InputError("expected --model NAME: the name of the model at the endpoint")
        return RunSettings(**given)
    if recorded.unsafe and not given["unsafe"]:
        raise InputError("the run was made with --unsafe; a replay needs --unsafe, too")
    return RunSettings(**{field.name: getattr(recorded, field.name) for field in fields(recorded)} | given)
