"""The comparison of runs, by paired tests."""

import pytest

from simllm.errors import InputError
from simllm.repair.summary import compare_runs
from tests.repair.made_attempts import attempt


def test_runs_are_compared_over_common_items():
    weak = [attempt(f"{i}", n, i < 4, patch=4, fix=2) for i in range(20) for n in (1, 2)]
    strong = [attempt(f"{i}", n, i < 18, patch=2, fix=2) for i in range(20) for n in (1, 2)]
    found = compare_runs({"weak": weak, "strong": strong})
    assert list(found) == ["AVG", "TOP-2", "RPSR"]
    assert found["AVG"].differences[0].difference == pytest.approx(-0.7)
    assert found["AVG"].differences[0].permutation_p < 0.001
    assert found["RPSR"].n == 4
    assert found["RPSR"].differences[0].difference == pytest.approx(1)
    three = compare_runs({"weak": weak, "strong": strong, "again": strong})["AVG"].differences
    raw = found["AVG"].differences[0].permutation_p
    assert three[0].permutation_p >= 2 * raw * 0.5  # Holm's correction over three pairs
    with pytest.raises(InputError, match="different items"):
        compare_runs({"weak": weak, "strong": strong[:-2]})
    assert compare_runs({"weak": weak}) == {}
