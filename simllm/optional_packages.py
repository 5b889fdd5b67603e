"""Optional packages of simllm: the error if one is not installed, with the command that installs it.

The optional packages form groups, called extras, such as `eval`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from simllm.errors import InputError


def require_eval_extra() -> contextlib.AbstractContextManager[None]:
    """Return a context manager that raises InputError if an import in its `with` block fails.

    The error advises to install simllm with its extra `eval`, which has the packages for evaluation.
    """
    return _require_extra("eval")


def require_code_extra() -> contextlib.AbstractContextManager[None]:
    """Return a context manager that raises InputError if an import in its `with` block fails.

    The error advises to install simllm with its extra `code`, which has the packages for analysing code.
    """
    return _require_extra("code")


def require_repair_extra() -> contextlib.AbstractContextManager[None]:
    """Return a context manager that raises InputError if an import in its `with` block fails.

    The error advises to install simllm with its extra `repair`, which has the packages for `simllm repair`.
    """
    return _require_extra("repair")


@contextlib.contextmanager
def _require_extra(extra: str) -> Iterator[None]:
    """Make a context manager that raises InputError if an import in its `with` block fails.

    The error advises to install an extra, which is a set of optional packages of simllm.

    Args:
        extra: The name of the extra, such as "eval".

    Raises:
        InputError: A package that the `with` block imports is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(missing_package(error.name, extra)) from None


def missing_package(package: str | None, extra: str) -> str:
    """Return the message for a package that is not installed, with the command that installs it.

    simllm cannot be installed from PyPI. Therefore the command only works in a checkout (a copy of the
    repository), and the message says so.

    Args:
        package: The name of the package, often taken from `ImportError.name`; None if it is unknown.
        extra: The optional dependency group of simllm that contains the package, such as "eval".
    """
    return f"{package} is not installed; in a checkout of simllm, run pip install '.[{extra}]'"
