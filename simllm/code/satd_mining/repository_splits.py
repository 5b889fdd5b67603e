"""Assignment of each git repository to a split: training, validation or test data."""

from __future__ import annotations

import hashlib

SPLITS = ("train", "validation", "test")


def split_of(repository: str) -> str:
    """Return the split of a repository, by a hash of its name: 85% train, 5% validation, 10% test."""
    # By the name alone: a repository stays in its split whatever other repositories are mined.
    percent = int.from_bytes(hashlib.sha256(repository.encode()).digest()[:8], "big") % 100
    return SPLITS[(percent >= 85) + (percent >= 90)]
