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
from importlib.metadata import version
from pathlib import Path

import numpy as np

import simllm
from simllm.errors import InputError
from simllm.io import output_file
from simllm.metrics.metric_interface import Example, Metric, PlainScores, candidates_and_references


@dataclass(frozen=True)
class CachedMetric:
    """Metric that stores the scores and warnings of another metric on disk, and reuses them.

    The cache key is a hash of the examples, the metric's signature and the code of simllm. If the cache
    cannot be read or written, the scores are computed without the cache. Scores are rounded to twelve
    significant digits, because rounding errors in further digits could make equal scores differ.

    Attributes:
        metric: The metric that computes the scores.
    """

    metric: Metric

    @property
    def name(self) -> str:
        """The name of the metric whose scores are cached."""
        return self.metric.name

    @property
    def signature(self) -> str:
        """A text that names everything that can change a score, such as options and versions.

        It is the signature of the metric whose scores are cached.
        """
        return self.metric.signature

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Score n examples, or load their scores from the cache."""
        candidates_and_references(examples)  # for its TypeError
        pinned = [self.signature, _code_version(), *map(asdict, examples)]
        key = hashlib.sha256(json.dumps(pinned).encode()).hexdigest()
        with contextlib.suppress(
            OSError, RuntimeError, TypeError, ValueError
        ):  # none yet, no home, or damaged
            kept, found = json.loads((_folder() / key[:2] / f"{key}.json").read_text(encoding="utf-8"))
            if [type(value) for value in kept] == [float] * len(examples) and isinstance(found, list):
                for message in found:
                    warnings.warn(str(message), stacklevel=2)
                return PlainScores(np.array(kept, float), self.signature, tuple(map(str, found)))
        scores = self.metric.score(examples)  # it issues its warnings itself
        values = np.array([float(f"{value:.12g}") for value in scores.values])
        found = getattr(scores, "warnings", ())
        with contextlib.suppress(OSError, RuntimeError, InputError):  # the scores are good all the same
            (_folder() / key[:2]).mkdir(parents=True, exist_ok=True)
            content = json.dumps([values.tolist(), list(found)])
            output_file.write(_folder() / key[:2] / f"{key}.json", content)
        return PlainScores(values, self.signature, tuple(found))


@cache
def _code_version() -> str:
    """Return a text that identifies the versions of simllm's code and of the libraries that metrics use.

    The text has a hash of simllm's Python files, and the versions of numpy, tokenizers and torch, which every
    metric may use. It becomes part of the cache key, so that scores of older code are not reused. The
    version of simllm is not enough, because it may stay the same although the code changes.
    """
    package = Path(simllm.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(str(file.relative_to(package)).encode() + hashlib.sha256(file.read_bytes()).digest())
    libraries = [f"{library}:{version(library)}" for library in ("numpy", "tokenizers", "torch")]
    return "|".join([digest.hexdigest(), *libraries])


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simllm" / "scores"
