"""The 95% intervals of the figures of a run."""

from simllm.repair.summary import compute_statistics
from tests.repair.made_attempts import attempt


def test_intervals_hold_the_figure():
    made = [attempt(f"{i}", n, (i + n) % 3 == 0, patch=i, fix=2) for i in range(30) for n in (1, 2)]
    found = compute_statistics(made, 2, 1, None)
    for name, value in {"AVG": found["AVG"], "TOP-2": found["TOP"]["2"], "RPSR": found["RPSR"]}.items():
        low, high = found["95% intervals"][name]
        assert low < value < high


def test_few_or_equal_items_have_no_interval():
    few = [attempt(f"{i}", 1, i % 2 == 0) for i in range(5)]
    assert compute_statistics(few, 1, 1, None)["95% intervals"]["AVG"] is None
    equal = [attempt(f"{i}", 1, True) for i in range(30)]
    assert compute_statistics(equal, 1, 1, None)["95% intervals"]["AVG"] is None
