"""The splits of mined repositories (train, validation, test)."""

from collections import Counter

import pytest

from simllm.code.satd_mining.mining import split_of


def test_split_is_stable_and_has_the_stated_shares():
    assert [split_of(name) for name in ("django", "psf/requests", "caf\u00e9")] == ["test", "train", "train"]
    shares = Counter(split_of(f"repository {number}") for number in range(20_000))
    for name, share in (("train", 0.85), ("validation", 0.05), ("test", 0.10)):
        assert shares[name] / 20_000 == pytest.approx(share, abs=0.01)
