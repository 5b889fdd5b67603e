"""The files of a finished corpus folder, and its facts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from simllm.errors import InputError

TRAIN, TEST = "train.txt", "test.txt"
COMMENTS, PAIRS = "comments.jsonl", "pairs.jsonl"
REPORT, PAGE = "report.json", "report.html"
FACTS = "corpus.json"
_KEYS = {"config", "sha256", "excluded_sha256", "counts", "comments_left_out", "files"}


def facts(folder: Path) -> dict[str, Any] | None:
    """Return what `corpus.json` in a folder holds; None if the folder is no finished corpus.

    Somebody else's `corpus.json` does not make a folder a corpus. Raises InputError if the file
    cannot be read.
    """
    names = (FACTS, TRAIN, TEST, COMMENTS, PAIRS)
    if not all(os.path.isfile(folder / name) for name in names):  # noqa: PTH113 (Path.is_file may raise)
        return None
    try:
        found = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder / FACTS}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(found, dict) and found.keys() >= _KEYS and isinstance(found["config"], dict)
    return found if is_ours else None
