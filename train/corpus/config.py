"""The settings of a corpus, the names of the files in its folder, and the reading of its `corpus.json`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError

TRAIN, TEST = "train.txt", "test.txt"
COMMENTS, PAIRS = "comments.jsonl", "pairs.jsonl"
REPORT, PAGE = "report.json", "report.html"
FACTS = "corpus.json"
CORPUS, PARTS = "a corpus", "parts of a corpus"  # contents of folders, for their markers
_KEYS = {"config", "sha256", "excluded_sha256", "counts", "comments_left_out", "files"}


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Read the `corpus.json` of a corpus folder; return None if the folder is not a finished corpus."""
    names = (FACTS, TRAIN, TEST, COMMENTS, PAIRS)
    if not all(os.path.isfile(folder / name) for name in names):  # noqa: PTH113 (Path.is_file may raise)
        return None
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder / FACTS}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        return None
    # A `corpus.json` of another program has other keys.
    is_ours = isinstance(facts, dict) and facts.keys() >= _KEYS and isinstance(facts["config"], dict)
    return facts if is_ours else None


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
