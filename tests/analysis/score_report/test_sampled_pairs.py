"""The sample of pairs that the page of a large report shows."""

import numpy as np
import pytest

from simllm.analysis.score_report.pairs import MOST, choose_pairs, describe_choice
from tests.analysis.score_report.report_page_data import run_of


def test_a_page_holds_the_most_telling_pairs_of_a_large_run():
    n = 3 * MOST
    same = np.random.default_rng(1).uniform(0, 1, n)
    run = run_of(n, same={"score": same}, changed={"score": same < 0.01})
    chosen = choose_pairs(run)
    assert len(chosen) == len({*chosen}) == MOST
    order = np.argsort(run.main)
    assert {*order[:500], *order[-500:], *np.flatnonzero(same < 0.01)} <= {*chosen}
    assert np.array_equal(chosen, choose_pairs(run))
    assert f"{MOST:,} of the {n:,} pairs" in describe_choice(run)
    # The rest is random: its mean score is near that of all pairs.
    rest = np.setdiff1d(chosen, np.concatenate([order[:500], order[-500:]]))
    assert run.main[rest].mean() == pytest.approx(run.main.mean(), abs=0.03)
