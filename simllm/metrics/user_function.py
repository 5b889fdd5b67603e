"""Metrics that are functions of the user: `module:function` or `file.py:function` on the command line."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.metrics.interface import FunctionMetric, UnavailableError
from simllm.metrics.text.readable_texts import POLICY, TextScorer

_EXPECTED = "expected a function of a list of n candidates and a list of n references that returns n numbers"


def load_function(name: str) -> FunctionMetric:
    """Import a function of the user as a metric; scores are not cached, because they may depend on anything.

    The function never gets empty texts: as for all metrics, a pair with one scores 1 if both are empty, and
    otherwise 0. The signature has a hash of the file that defines the function.
    """
    place, _, attribute = name.rpartition(":")
    module = _module(place)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(f"metric {name}: {place} has no function {attribute}")
    source = Path(module.__file__ or "")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12] if source.is_file() else "unknown"
    scorer = TextScorer(partial(_call, name, function))
    warnings = partial(scorer.warnings, name)
    return FunctionMetric(name, f"{name}|source:{digest}|{POLICY}", scorer, warnings)


def _module(place: str) -> ModuleType:
    """Import a module by its name, or a file ending in `.py` by its path; errors of its code are one line."""
    try:
        if not place.endswith(".py"):
            # The current folder comes last, so that no file in it replaces an installed package.
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.append(str(Path.cwd()))
            return import_module(place)
        spec = util.spec_from_file_location(Path(place).stem, place)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file")
        module = util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # the user's code raises what it likes
        reason = str(error) or type(error).__name__
        raise UnavailableError(f"{place} cannot be imported ({reason})") from None


def _call(
    name: str, function: Callable[..., Any], candidates: Sequence[str], references: Sequence[str]
) -> Floats:
    """Call a function of the user, and check that it returns n finite numbers."""
    try:
        values = np.asarray(function(list(candidates), list(references)), np.float64)
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
        raise InputError(f"metric {name}: raised {raised}; {_EXPECTED}") from error
    if values.shape != (len(candidates),):
        got = "one number" if values.ndim == 0 else f"an array of the shape {values.shape}"
        raise InputError(f"metric {name}: returned {got} for {len(candidates)} pairs; {_EXPECTED}")
    if not np.isfinite(values).all():
        raise InputError(f"metric {name}: returned a number that is not finite; {_EXPECTED}")
    return values
