"""The options of a run, its settings, and its folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from simllm.errors import InputError, OptionError
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import build, read_json
from simllm.llm.limits import Price
from simllm.llm.model import Sampling
from simllm.repair.items import RepairItem, read_items
from simllm.repair.results import RESULTS, TREES

SETTINGS, ITEMS, REPLIES = "settings.json", "items.jsonl", "replies.jsonl"
_MOST_ATTEMPTS = 10_000
CONTENT = "a repair run"  # of the folder, for its marker
_MOST_PARALLEL = 1000
_OF_ENDPOINT = ("base_url", "model", "rate", "retries", "max_cost")
FilePath = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class RunOptions(Sampling):
    """The options of a run. None stands for the default, and in a replay for the value of the earlier run.

    Attributes:
        model: The name of the model at the endpoint.
        temperature: 0 for the most probable reply; default: 1.
        top_p: The share of the probability from which tokens are drawn; default: 1.
        max_tokens: The largest number of tokens of a reply; by default, the endpoint decides.
        seed: The seed of the first attempt; attempt n has the seed `seed + n - 1`.
        stop: Texts at which a reply ends.
        base_url: The address of the endpoint, such as "http://localhost:8000/v1"; by default, the value of
            the environment variable OPENAI_BASE_URL.
        strategy: "single" (one request), "multi-regenerate" (a new conversation in each round), "cref" (one
            conversation over all rounds), which is the default, or "chatrepair" (one conversation about the
            first failed test).
        parts: The help that the strategy "single" gives the model: any of "guidance" (a tutor's hint),
            "solution" (a description of a solution) and "tests" (the failed tests).
        attempts: The number of attempts at each item; default: 5.
        rounds: The largest number of rounds in an attempt; by default, as many as the strategy has.
        prompts: A folder with templates that replace the included ones, or "cref-paper": the included prompts
            with the request of the published ones, which does not ask for few changes.
        shows_output: Whether the model is shown the actual output of failed tests.
        compare: The rule that compares a program's output with the expected output: "lines" (the default),
            "tokens", "exact" or "float:1e-6" (numbers may have an error of up to 1e-6).
        judge: The name of a metric that judges summaries; None if the items are programs.
        bar: The lowest score of an accepted summary.
        trees: The parser of the trees on which patches are measured: "tree-sitter" (the default), or
            "libclang" as in CREF's published code, for C++ alone.
        prices: A JSON file with the prices of a million tokens of requests ("input") and of replies
            ("output"). For a model M, it is, for example, `{"M": {"input": 3, "output": 15}}`.
        max_cost: The total cost, in the currency of `prices`, after which no more requests are sent.
        parallel: The number of attempts at the same time.
        rate: The largest number of requests in a minute.
        retries: The largest number of times that a failed request is repeated; default: 5.
        replay: The folder of an earlier run, whose recorded replies replace an endpoint. `model`, the
            sampling and the options of requests (`base_url`, `rate`, `retries` and `max_cost`) cannot be
            given.
        unsafe: Whether programs run without the sandbox.
    """

    model: str | None = None
    base_url: str | None = None
    strategy: str | None = None
    parts: str | Sequence[str] | None = None
    attempts: int | None = None
    rounds: int | None = None
    prompts: FilePath | None = None
    shows_output: bool | None = None
    compare: str | None = None
    judge: str | None = None
    bar: float | None = None
    trees: str | None = None
    prices: FilePath | None = None
    max_cost: float | None = None
    parallel: int = 1
    rate: float | None = None
    retries: int | None = None
    replay: FilePath | None = None
    unsafe: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replay is not None:
            for name in (*_OF_ENDPOINT, *(one.name for one in fields(Sampling))):
                if getattr(self, name) is not None:
                    raise OptionError(f"{{{name}}} goes with an endpoint; {{replay}} uses recorded replies")
        if not 1 <= self.parallel <= _MOST_PARALLEL:
            raise OptionError(
                "{parallel} {number}: expected a whole number from 1 to {most:,}",
                number=self.parallel,
                most=_MOST_PARALLEL,
            )


@dataclass(frozen=True)
class RunSettings(Sampling):
    """The settings of a run, with the sampling of replies.

    Attributes:
        strategy: The name of the strategy: "single", "multi-regenerate" or "cref".
        parts: The parts that the strategy "single" adds.
        attempts: The number of attempts at each item, at most 10,000.
        rounds: The largest number of rounds in an attempt; None for as many as the strategy has.
        shows_output: Whether the model is shown the actual output of failed tests.
        compare: The rule that compares a program's output with the expected output, such as "lines".
        judge: The name of the metric that judges summaries; None for programs.
        bar: The lowest score with which a summary is accepted; None for programs.
        price: The price of the model's tokens; None if it is not known.
        unsafe: Whether programs run without the sandbox.
        trees: The parser of the trees on which patches are measured: "tree-sitter" or "libclang".
        prompt_set: The name of an included set of prompts, such as "cref-paper"; None for other prompts.
        prompts: The content of each file with prompts or strategies, by file name.
    """

    model: str
    temperature: float | None = field(default=1.0, kw_only=True)
    top_p: float | None = field(default=1.0, kw_only=True)
    strategy: str = "cref"
    parts: tuple[str, ...] = ()
    attempts: int = 5
    rounds: int | None = None
    shows_output: bool = False
    compare: str = "lines"
    judge: str | None = None
    bar: float | None = None
    price: Price | None = None
    unsafe: bool = False
    trees: str = TREES[0]
    prompt_set: str | None = None
    prompts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.attempts <= _MOST_ATTEMPTS:
            raise OptionError(
                "{attempts} {number}: expected a whole number from 1 to {most:,}",
                number=self.attempts,
                most=_MOST_ATTEMPTS,
            )
        if (self.judge is None) != (self.bar is None):
            raise OptionError("{judge} METRIC and {bar} X go together")
        if self.bar is not None and not math.isfinite(self.bar):
            raise OptionError("{bar} {number}: expected a finite number", number=self.bar)
        if self.judge and (self.shows_output or self.compare != "lines" or self.unsafe):
            raise OptionError("{shows_output}, {compare} and {unsafe} are for programs, not for summaries")
        if self.trees not in TREES:
            raise OptionError("{trees} {name}: expected {all}", name=self.trees, all=" or ".join(TREES))

    @property
    def label(self) -> str:
        """A name of the run for tables, such as "M, single with guidance"."""
        parts = f" with {', '.join(self.parts)}" if self.parts else ""
        prompts = f", prompts {self.prompt_set}" if self.prompt_set else ""
        return f"{self.model}, {self.strategy}{parts}{prompts}"


def read_settings(run: Path) -> RunSettings:
    """Read `settings.json` in the folder of a run."""
    if not (run / SETTINGS).is_file():
        raise InputError(f"{run}: has no {SETTINGS}; expected the folder of a run")
    return build(RunSettings, read_json(run / SETTINGS), str(run / SETTINGS))


def read_run_items(run: Path, settings: RunSettings) -> list[RepairItem]:
    """Read the items of a run from its folder."""
    return read_items(run / ITEMS, settings.judge is not None)


def own_folder(folder: Path, settings: RunSettings, items: list[RepairItem]) -> None:
    """Create the folder of a run with its settings and items, or check that the run there has the same ones.

    A run that has not begun gets the new settings, so that a command with a wrong model can be corrected.
    """
    OutputFolder(folder, CONTENT).own()
    texts = {
        ITEMS: "".join(json.dumps(_given(asdict(item)), ensure_ascii=False) + "\n" for item in items),
        SETTINGS: json.dumps(asdict(settings), indent=1, ensure_ascii=False) + "\n",
    }
    # All checks before the first write, so that a refusal leaves no half of a run behind.
    for name in texts:
        OutputFolder(folder).check_addition(name)
    if not has_begun(folder):
        for name, text in texts.items():
            OutputFolder(folder).write(name, text)
        return
    old = read_settings(folder)
    # Replies to other prompts or programs would make the figures a mixture of two runs.
    for part in fields(RunSettings):
        if getattr(old, part.name) != getattr(settings, part.name):
            raise InputError(f"{folder}: holds a run with other settings ({part.name}); name another folder")
    if read_run_items(folder, old) != items:
        raise InputError(f"{folder}: holds a run with other items; name another folder")


def has_begun(folder: Path) -> bool:
    """Return whether a folder has a run with a reply or with results."""
    if not (folder / SETTINGS).exists():
        return False
    replies, results = folder / REPLIES, folder / RESULTS
    return results.exists() or (replies.exists() and replies.stat().st_size > 0)


def _given(values: dict[str, object]) -> dict[str, object]:
    """Return the attributes of an item that are not None or ()."""
    return {name: value for name, value in values.items() if value not in (None, ())}
