"""A cache of scores on the disk, for metrics that come with simllm."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

import simllm
from simllm.errors import InputError
from simllm.io import files
from simllm.metrics.protocol import Example, Metric, PlainScores, candidates_and_references


@dataclass(frozen=True)
class Cached:
    """A metric whose scores are kept on the disk.

    The key is a hash of the examples, the signature and the code of simllm. A cache that cannot be
    read or written is no error. Scores have twelve significant digits: further ones are rounding
    noise, which would put equal scores in an order.
    """

    metric: Metric

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name

    @property
    def signature(self) -> str:
        """The signature of the metric."""
        return self.metric.signature

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Score n examples, or return the scores of an earlier call with the same examples."""
        candidates_and_references(examples)  # or a TypeError says what is no example
        pinned = [self.signature, _code(), *map(asdict, examples)]
        key = hashlib.sha256(json.dumps(pinned).encode()).hexdigest()
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # none yet, no home, or damaged
            kept = json.loads((_folder() / key[:2] / f"{key}.json").read_text(encoding="utf-8"))
            if isinstance(kept, list) and [type(value) for value in kept] == [float] * len(examples):
                return PlainScores(np.array(kept, float), self.signature)
        values = np.array([float(f"{value:.12g}") for value in self.metric.score(examples).values])
        with contextlib.suppress(OSError, RuntimeError, InputError):  # the scores are good all the same
            (_folder() / key[:2]).mkdir(parents=True, exist_ok=True)
            files.write(_folder() / key[:2] / f"{key}.json", json.dumps(values.tolist()))
        return PlainScores(values, self.signature)


@cache
def _code() -> str:
    """Return a digest of simllm's own code, and the libraries that every metric may use.

    It is no part of the signatures: for users the version says the same.
    """
    package = Path(simllm.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(str(file.relative_to(package)).encode() + hashlib.sha256(file.read_bytes()).digest())
    libraries = [f"{library}:{version(library)}" for library in ("numpy", "tokenizers", "torch")]
    return "|".join([digest.hexdigest(), *libraries])


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simllm" / "scores"
