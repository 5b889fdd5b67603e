"""Cache of metric scores on disk, for metrics that come with simllm."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

import simllm
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.metrics.interface import Example, Metric, PlainScores, check_examples


@dataclass(frozen=True)
class CachedMetric:
    """Metric that stores the scores and warnings of another metric on disk, and reuses them.

    If the cache cannot be read or written, the scores are computed without the cache.
    """

    metric: Metric

    @property
    def name(self) -> str:
        """The name of the metric whose scores are cached."""
        return self.metric.name

    @property
    def signature(self) -> str:
        """The signature of the metric whose scores are cached."""
        return self.metric.signature

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Score n examples, or load their scores from the cache."""
        check_examples(examples)
        pinned = [self.signature, _code_version(), *map(asdict, examples)]
        key = hashlib.sha256(json.dumps(pinned).encode()).hexdigest()
        with contextlib.suppress(
            OSError, RuntimeError, TypeError, ValueError
        ):  # none yet, no home, or damaged
            kept, found = json.loads((_folder() / key[:2] / f"{key}.json").read_text(encoding="utf-8"))
            # JSON from disk may hold anything, so that only a list of floats of the right length counts as
            # scores.
            if [type(value) for value in kept] == [float] * len(examples) and isinstance(found, list):
                for message in found:
                    warnings.warn(str(message), stacklevel=2)
                return PlainScores(np.array(kept, float), self.signature, tuple(map(str, found)))
        scores = self.metric.score(examples)  # it issues its warnings itself
        # Rounding errors in further digits could make equal scores differ.
        values = np.array([float(f"{value:.12g}") for value in scores.values])
        found = getattr(scores, "warnings", ())
        with contextlib.suppress(OSError, RuntimeError, InputError):  # the scores are good all the same
            (_folder() / key[:2]).mkdir(parents=True, exist_ok=True)
            content = json.dumps([values.tolist(), list(found)])
            output_file.write(_folder() / key[:2] / f"{key}.json", content)
        return PlainScores(values, self.signature, tuple(found))


@cache
def _code_version() -> str:
    """Return a hash of simllm's Python files, with the versions of libraries that every metric may use."""
    # The version of simllm is not enough, because the version may stay the same although the code changes.
    package = Path(simllm.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(str(file.relative_to(package)).encode() + hashlib.sha256(file.read_bytes()).digest())
    libraries = packages.versions(["numpy", "tokenizers", "onnxruntime", "torch"])
    return "|".join([digest.hexdigest(), *(f"{name}:{found}" for name, found in libraries.items())])


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simllm" / "scores"
