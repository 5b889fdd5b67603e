"""The options of a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields

from simllm.errors import OptionError
from simllm.llm.model import Sampling

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
