"""Metrics by name: simllm and its baselines, with what pins their values and a cache of these."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simllm
from simllm.errors import InputError
from simllm.io import files
from simllm.metric import SimLLM
from simllm.metrics.text import BASELINES, Score, UnavailableError, baseline

ALL = ("simllm", *BASELINES)
_COLUMN = "column"  # of rated data, with another metric's scores


@dataclass(frozen=True)
class Metric:
    """A metric under the name that it was asked for by; the signature pins its values."""

    name: str
    signature: str
    compute: Score
    column: str = ""  # of rated data, for scores that others have computed

    def score(self, candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        """(n,) scores, higher is more similar; those of the same texts are computed once."""
        texts = "\0".join([self.signature, str(len(candidates)), *candidates, *references])
        key = hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()
        file = _cache() / key[:2] / f"{key}.json"
        with contextlib.suppress(OSError, ValueError):  # none yet, or damaged
            return np.array(json.loads(file.read_text()), float)
        values = self.compute(candidates, references)
        with contextlib.suppress(OSError, InputError):  # scores that cannot be kept are still scores
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write(file, json.dumps(values.tolist()))
        return values


def check(names: Sequence[str]) -> None:
    """Raise InputError for a name that is none."""
    for name in names:
        if (kind := name.partition("=")[0]) not in (*ALL, _COLUMN):
            raise InputError(f"metric {kind!r}: expected one of {', '.join(ALL)}, column=NAME")


def load(
    names: Sequence[str] = ALL, model: str | os.PathLike[str] | None = None
) -> tuple[list[Metric], dict[str, str]]:
    """The metrics of these names, `name` or `name=argument`, and what to do about those that are missing.

    `model` is simllm's, by default the included one; `simllm=FOLDER` names another, and
    `column=NAME` scores that come with rated data. Raises InputError for a name that is none,
    and where no metric is left.
    """
    check(names)
    found, missing = [], {}
    for name in dict.fromkeys(names):
        kind, _, argument = name.partition("=")
        try:
            if kind == "simllm":
                found.append(of_model(name, argument or model))
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
    """The metric that `SimLLM(model, **options)` is."""
    loaded = SimLLM(model, **options)
    return Metric(name, loaded.signature, lambda c, r: loaded.score(c, r).values)


def _of_texts_unknown(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    raise UnavailableError("a column holds the scores of rated pairs, and no others")


def _of_baseline(name: str, kind: str, argument: str) -> Metric:
    compute = baseline(kind, argument)
    libraries = [f"{library}:{version(library)}" for library in BASELINES[kind].libraries]
    content = [f"{BASELINES[kind].argument.lower()}:{_digest(Path(argument))}"] if argument else []
    return Metric(name, "|".join([kind, *content, *libraries, f"version:{simllm.__version__}"]), compute)


def _digest(path: Path) -> str:
    """First 12 hex digits of the SHA-256 of a file, or of all files in a folder; else the name itself."""
    found = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    if not path.exists():
        return str(path)
    digest = hashlib.sha256()
    for file in found:
        with file.open("rb") as data:
            digest.update(str(file.relative_to(path)).encode() + hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()[:12]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simllm" / "scores"
