import numpy as np

from simllm.stats.significance import friedman_nemenyi


def test_noise_of_arithmetic_breaks_no_tie_in_friedmans_test():
    values = np.array([[0.3, 0.3, 0.1], [0.5, 0.5, 0.2], [0.4, 0.4, 0.6]])
    noisy = values + np.array([[0, 5e-17, 0], [1e-16, 0, 0], [0, 6e-17, 0]])
    assert not np.array_equal(noisy, values)
    assert friedman_nemenyi(noisy).outcome == friedman_nemenyi(values).outcome
