"""Versions of installed libraries, for reports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from platform import platform, python_version

import simllm


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of simllm, Python, the operating system ("system") and the installed ones of
    `libraries`.
    """
    found = {"simllm": simllm.__version__, "python": python_version(), "system": platform()}
    for name in libraries:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
