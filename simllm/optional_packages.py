"""Optional packages of simllm: the error if one is not installed, with the command that installs it.

The optional packages form groups, called extras, such as `eval`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from simllm.errors import InputError


def require_eval_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for evaluation."""
    return _require_extra("eval")


def require_code_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for analysing code."""
    return _require_extra("code")


def require_repair_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for `simllm repair`."""
    return _require_extra("repair")


@contextlib.contextmanager
def _require_extra(extra: str) -> Iterator[None]:
    """Raise InputError with the name of the extra if an import in the `with` block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(missing_package(error.name, extra)) from None


def missing_package(package: str | None, extra: str) -> str:
    """Return the message for a package of an extra that is not installed; None if its name is unknown."""
    # simllm is not on PyPI, so that the command works in a checkout (a copy of the repository) only.
    return f"{package} is not installed; in a checkout of simllm, run pip install '.[{extra}]'"
