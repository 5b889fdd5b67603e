"""Metrics by name: simllm and its baselines, each with a signature, and a cache of their scores."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simllm
from simllm.errors import InputError
from simllm.io import files
from simllm.metric import SimLLM
from simllm.metrics import text
from simllm.metrics.text import BASELINES, Score, UnavailableError

ALL = ("simllm", *BASELINES)
_COLUMN = "column"  # of rated data, with another metric's scores


@dataclass(frozen=True)
class Metric:
    """A metric under the name that the user asked for; the signature pins its scores."""

    name: str
    signature: str
    compute: Score
    column: str = ""  # of rated data, for scores that others have computed

    def score(self, candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        """Score n pairs: (n,) scores, higher is more similar; a cache keeps those of earlier calls.

        The cache goes by the texts, the signature and the code of simllm. A cache that cannot be
        read or written is no error.
        """
        pinned = [self.signature, _code(), list(candidates), list(references)]
        key = hashlib.sha256(json.dumps(pinned).encode()).hexdigest()
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # none yet, no home, or damaged
            kept = json.loads((_cache() / key[:2] / f"{key}.json").read_text(encoding="utf-8"))
            if isinstance(kept, list) and [type(value) for value in kept] == [float] * len(candidates):
                return np.array(kept, float)
        values = self.compute(candidates, references)
        with contextlib.suppress(OSError, RuntimeError, InputError):  # the scores are good all the same
            (_cache() / key[:2]).mkdir(parents=True, exist_ok=True)
            files.write(_cache() / key[:2] / f"{key}.json", json.dumps(values.tolist()))
        return values


def check(names: Sequence[str]) -> None:
    """Raise InputError for a name that no metric has."""
    for name in names:
        if (kind := name.partition("=")[0]) not in (*ALL, _COLUMN):
            raise InputError(f"metric {kind!r}: expected one of {', '.join(ALL)}, column=NAME")


def load(
    names: Sequence[str] = ALL, model: str | os.PathLike[str] | None = None
) -> tuple[list[Metric], dict[str, str]]:
    """Load metrics by name.

    Args:
        names: each `name` or `name=argument`. `simllm=FOLDER` is the metric of another model,
            `column=NAME` stands for scores that come with rated data.
        model: the model folder of `simllm`; by default the included one.

    Returns:
        The metrics, and for each missing one its name and what to do about it.

    Raises:
        InputError: a name that no metric has, or no metric is left.
    """
    check(names)
    found, missing = [], {}
    for name in dict.fromkeys(names):
        kind, _, argument = name.partition("=")
        try:
            if kind == "simllm":
                found.append(of_model(name, argument or model))
            elif kind == _COLUMN and not argument:
                raise UnavailableError("name it as column=NAME")
            elif kind == _COLUMN:
                found.append(Metric(name, name, _of_texts_unknown, argument))
            else:
                found.append(_of_baseline(name, kind, argument))
        except UnavailableError as error:
            missing[name] = str(error)
    if not found:
        raise InputError(
            "; ".join(f"{name}: {remedy}" for name, remedy in missing.items()) or "no metric is named"
        )
    return found, missing


def of_model(name: str, model: str | os.PathLike[str] | None, **options: Any) -> Metric:
    """Make a metric of `SimLLM(model, **options)`."""
    loaded = SimLLM(model, **options)
    return Metric(name, loaded.signature, lambda c, r: loaded.score(c, r).values)


def _of_texts_unknown(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    raise UnavailableError("a column holds the scores of rated pairs, and no others")


def _of_baseline(name: str, kind: str, argument: str) -> Metric:
    compute = text.baseline(kind, argument)
    libraries = [f"{library}:{version(library)}" for library in BASELINES[kind].libraries]
    data = [f"{what}:{_digest(path)}" for what, path in text.data(kind, argument).items()]
    return Metric(name, "|".join([kind, *data, *libraries, f"version:{simllm.__version__}"]), compute)


def _digest(path: Path) -> str:
    """Return the first 12 hex digits of the SHA-256 of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        with file.open("rb") as data:
            digest.update(str(file.relative_to(path)).encode() + hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()[:12]


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


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simllm" / "scores"
