"""The tokens of a run, and their cost."""

import pytest

from simllm.repair.token_prices import Price, tokens_and_cost
from tests.repair.made_attempts import attempt


def test_tokens_that_are_not_reported_stay_unknown():
    price = Price(3, 15)
    found = tokens_and_cost([attempt("a", 1, True), attempt("b", 1, True)], price)
    assert found["cost"] == pytest.approx((20 * 3 + 14 * 15) / 1e6)
    found = tokens_and_cost([attempt("a", 1, True), attempt("b", 1, True, tokens=(10, None))], price)
    assert (found["prompt tokens"], found["completion tokens"], found["cost"]) == (20, None, None)
    assert tokens_and_cost([attempt("a", 1, True)], None)["cost"] is None
