"""Options of commands that ask a language model: its address, the sampling of replies, and limits."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from simllm.cli import shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import OptionError
from simllm.llm.limits import read_price
from simllm.llm.model import Model, Sampling, read_model


@dataclass(frozen=True, kw_only=True)
class ModelOptions(CommonOptions, Sampling):
    """The options of commands that ask one model, or replay its recorded replies."""

    base_url: str | None = None
    model: str | None = None
    model_file: Path | None = None
    replay: Path | None = None
    completions: bool = False
    rate: float | None = None
    retries: int | None = None
    prices: Path | None = None
    max_cost: float | None = None
    retry_failed: bool = False


_COMMON = {one.name for one in fields(CommonOptions)}
NAMES = tuple(one.name for one in fields(ModelOptions) if one.name not in _COMMON)


def add_model(command: argparse._ActionsContainer) -> None:
    """Add the options of `ModelOptions`; `--model` is one of the common options."""
    add_address(command)
    command.add_argument(
        "--model-file", type=Path, metavar="FILE", help="TOML with address, model, sampling, …"
    )
    command.add_argument("--replay", type=Path, metavar="FILE", help="use the replies in FILE: no network")
    command.add_argument(
        "--completions", action="store_true", help="the model continues the prompt: for base models"
    )
    add_sampling(command)
    add_limits(command)
    command.add_argument(
        "--retry-failed", action="store_true", help="ask again where requests failed for good"
    )


def add_address(command: argparse._ActionsContainer) -> None:
    """Add `--base-url`, the address of the endpoint."""
    command.add_argument("--base-url", metavar="URL", help="the endpoint; default: OPENAI_BASE_URL")


def add_sampling(command: argparse._ActionsContainer) -> None:
    """Add the options of `simllm.llm.model.Sampling`."""
    command.add_argument("--temperature", type=float, metavar="X", help="0: the most probable reply")
    command.add_argument("--top-p", type=float, metavar="X", help="share of the probability to draw from")
    command.add_argument("--max-tokens", type=int, metavar="N", help="most tokens of a reply")
    command.add_argument("--seed", type=int, metavar="N", help="seed of the first sample; the next has N + 1")
    command.add_argument(
        "--stop", action="append", metavar="TEXT", help="a reply ends before this text; may be repeated"
    )


def add_limits(command: argparse._ActionsContainer) -> None:
    """Add `--rate`, `--retries`, `--prices` and `--max-cost`."""
    command.add_argument("--rate", type=float, metavar="N", help="most requests a minute")
    command.add_argument("--retries", type=int, metavar="N", help="of a request; default: 5")
    command.add_argument("--prices", type=Path, metavar="FILE", help="JSON: prices of a million tokens")
    command.add_argument("--max-cost", type=float, metavar="X", help="ask nothing more after this cost")


def check_replay(options: ModelOptions, *others: str) -> None:
    """Refuse the options of an endpoint, and others, beside `--replay`."""
    if options.replay is not None:
        unused = [name for name in (*NAMES, *others) if name != "replay"]
        shared_options.refuse(options, unused, "goes with an endpoint; --replay uses recorded replies")


def read_given(options: ModelOptions) -> Model:
    """Return the model of `--model-file` with the options that were given, which count before the file."""
    own = {one.name for one in fields(options)}
    given: dict[str, Any] = {one.name: getattr(options, one.name) for one in fields(Model) if one.name in own}
    given = {name: value for name, value in given.items() if value is not None}
    if options.completions:
        given["api"] = "completions"
    model = read_model(options.model_file) if options.model_file else Model()
    if options.prices is not None:
        name = given.get("model", model.model)
        if name is None:
            raise OptionError("{prices} needs {model} NAME, which has the prices")
        given["price"] = read_price(options.prices, name)
    return replace(model, **given)
