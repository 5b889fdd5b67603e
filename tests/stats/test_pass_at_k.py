"""Pass rates: items without enough attempts are errors."""

import pytest

from simllm.errors import InputError
from simllm.stats.classification import average_pass_rate, pass_at_k


@pytest.mark.parametrize("passed", [[[True], []], [[True, False], [True]]])
def test_too_few_attempts_for_top_k_are_an_error(passed):
    with pytest.raises(
        InputError, match=f"TOP-2 needs 2 candidates of each item; an item has {len(min(passed, key=len))}"
    ):
        pass_at_k(passed, 2)


def test_an_item_without_attempts_has_no_average():
    with pytest.raises(InputError, match="an item has none"):
        average_pass_rate([[True], []])
