"""Assignment of each git repository to a split: training, validation or test data."""

from __future__ import annotations

import hashlib

SPLITS = ("train", "validation", "test")


def split_of(repository: str) -> str:
    """Return the split of a repository: "train", "validation" or "test".

    The split is chosen by a hash of the name: 85% of all names get train, 5% validation and 10% test.

    Args:
        repository: The name of the repository.
    """
    percent = int.from_bytes(hashlib.sha256(repository.encode()).digest()[:8], "big") % 100
    return SPLITS[(percent >= 85) + (percent >= 90)]
