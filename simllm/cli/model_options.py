"""Options of commands that ask a language model: its address, the sampling of replies, and limits."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simllm.errors import OptionError
from simllm.llm.limits import read_price
from simllm.llm.model import Model


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


def with_given(model: Model, given: Mapping[str, Any], prices: Path | None) -> Model:
    """Return a model with the options that were given, and with its prices from the file of `--prices`."""
    values: dict[str, Any] = dict(given)
    if prices is not None:
        name = values.get("model", model.model)
        if name is None:
            raise OptionError("{prices} needs {model} NAME, which has the prices")
        values["price"] = read_price(prices, name)
    return replace(model, **values)
