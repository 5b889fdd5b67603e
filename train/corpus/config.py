"""Configuration of a corpus of code comments."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.errors import InputError


@dataclass(frozen=True)
class CorpusConfig:
    """Settings for the corpus of code comments: its sources, and the texts left out or held out."""

    sources: tuple[str, ...]  # files, folders of code, corpora, glob patterns, or `installed-python`
    exclude: tuple[str, ...] = ()  # rated files; their texts are left out of the corpus
    test_share: float = 0.1  # share of the texts that is held out
    tags: int = 0  # number of tagged revisions to read from git repositories, besides the newest

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("sources must not be empty")
        if not 0 < self.test_share < 1:
            raise InputError(f"test_share must be between 0 and 1, not {self.test_share}")
        if self.tags < 0:
            raise InputError(f"tags must not be negative, but is {self.tags}")
