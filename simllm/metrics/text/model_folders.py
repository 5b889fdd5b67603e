"""Loading of models of other packages, for the metrics SentenceBERT and BERTScore."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from simllm.io.reading import read_json
from simllm.metrics.interface import UnavailableError

SINGLE_DIGITS = 6  # decimals of a score from float32 embeddings; further digits depend on the batch


@contextlib.contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Refuse a folder with code of its own, and turn errors of a `with` block that loads it into one line."""
    import torch

    for file in sorted(folder.rglob("*config.json")):
        if file.is_file() and "auto_map" in read_json(
            file
        ):  # transformers would ask on the terminal whether to run the code
            raise UnavailableError(f"{file}: names code to run (auto_map); no code of model folders is run")
    try:
        with torch.random.fork_rng(devices=[]):  # transformers draws weights that the folder lacks
            yield
    except Exception as error:  # the libraries raise what they like for odd folders
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnavailableError(f"{folder}: cannot be loaded ({reason})") from None
