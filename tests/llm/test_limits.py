"""The prices of tokens."""

import json

import pytest

from simllm.errors import InputError
from simllm.llm.limits import Price, read_price


def test_price_of_tokens(tmp_path):
    (tmp_path / "prices.json").write_text('{"M": {"input": 3, "output": 15}}')
    price = read_price(tmp_path / "prices.json", "M")
    assert price.of(1_000_000, 2_000_000) == 33
    assert price.of(None, 1) is None


@pytest.mark.parametrize("price", [-1, float("nan"), float("inf"), 10**400, 1e300])
def test_impossible_prices_are_refused(tmp_path, price):
    with pytest.raises(InputError, match="a price must be a finite number from 0"):
        Price(price, 1)
    (tmp_path / "prices.json").write_text(json.dumps({"M": {"input": 1, "output": price}}))
    with pytest.raises(InputError):
        read_price(tmp_path / "prices.json", "M")
