"""Configuration of a corpus of code comments."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.errors import InputError


@dataclass(frozen=True)
class CorpusConfig:
    """Settings for a corpus.

    Attributes:
        sources: Files, folders of code, finished corpora, glob patterns, `hf:NAME` for a data set, or
            `installed-python` for the Python modules on this machine.
        exclude: JSON-lines files with rated text pairs, whose texts are kept out of the corpus.
        test_share: The share of the texts that is held out for testing.
        tags: Tagged revisions to read from each git repository, besides the current commit.
    """

    sources: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    test_share: float = 0.1
    tags: int = 0

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("sources must not be empty")
        if not 0 < self.test_share < 1:
            raise InputError(f"test_share must be between 0 and 1, not {self.test_share}")
        if self.tags < 0:
            raise InputError(f"tags must not be negative, but is {self.tags}")
