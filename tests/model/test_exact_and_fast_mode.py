"""The scores of the modes `exact`, `fast` and `plain`."""

import numpy as np
import pytest

from simllm import InputError, SimLLM


def test_scores_of_all_modes_agree(comments):
    plain, exact, fast = (SimLLM(mode=mode) for mode in ("plain", "exact", "fast"))
    candidates, references = comments[:150], comments[1:151]
    expected = plain.score(candidates, references).values
    assert np.abs(exact.score(candidates, references).values - expected).max() < 1e-5
    assert np.abs(fast.score(candidates, references).values - expected).max() < 0.01
    assert "|dtype:bfloat16|" in fast.signature
    with pytest.raises(InputError, match="mode 'quick': expected one of plain, exact, fast"):
        SimLLM(mode="quick")
