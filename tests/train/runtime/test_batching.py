"""Random numbers that depend only on a seed and a key."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from train.runtime.batching import combined_seed, keyed_uniform


def test_seeds_do_not_collide():
    assert len({combined_seed(a, b) for a in range(100) for b in range(100)}) == 10_000


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=50), st.integers(0, 2**63 - 1))
def test_noise_depends_only_on_seed_and_key(keys, seed):
    keys = np.array(keys)
    together = keyed_uniform(seed, keys)
    assert ((together >= 0) & (together < 1)).all()
    assert together.tolist() == [keyed_uniform(seed, keys[i : i + 1])[0] for i in range(len(keys))]


def test_noise_is_uniform_and_independent_of_its_neighbours():
    one, other = keyed_uniform(1, np.arange(10**6)), keyed_uniform(2, np.arange(10**6))
    assert np.histogram(one, 100, (0, 1))[0].std() < 150  # the expectation is 100
    for pair in ((one[1:], one[:-1]), (one, other)):
        assert abs(np.corrcoef(*pair)[0, 1]) < 4e-3
