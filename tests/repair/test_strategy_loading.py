"""Strategies that cannot be loaded."""

import re

import pytest

from simllm.errors import InputError
from simllm.repair.strategies import load_prompts, load_strategy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("other",), "strategy 'other': expected one of single, multi-regenerate, cref, chatrepair"),
        (("cref", ["tests"]), "parts goes with the strategy single; cref has its own parts"),
        (("single", ["hints"]), "parts hints: expected any of guidance, solution, tests"),
        (("single", [], 2), "rounds 2: the strategy single has 1"),
        (("cref", [], 0), "rounds 0: expected a whole number from 1 to 1,000"),
        (("single", ["tests"], None, True), "parts: a summary has only guidance to add"),
        (("multi-regenerate", [], None, True), "strategy 'multi-regenerate': expected one of single, cref"),
    ],
)
def test_wrong_strategies(arguments, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        load_strategy(load_prompts(), *arguments)
