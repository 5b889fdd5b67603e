"""Versions of installed libraries, for reports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from platform import platform, python_version

import simllm


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of simllm, Python, the operating system and some libraries.

    Args:
        libraries: Names of Python packages; packages that are not installed are left out.

    Returns:
        A dict from names to versions; the operating system has the name "system".
    """
    found = {"simllm": simllm.__version__, "python": python_version(), "system": platform()}
    for name in libraries:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
