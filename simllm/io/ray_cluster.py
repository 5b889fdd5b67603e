"""Connection to a Ray cluster; every problem of the cluster is one line."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simllm.errors import InputError

_PATIENCE = 10.0  # seconds
RERUN = "rerun the same command to resume"


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a Ray cluster, and disconnect at the end.

    Args:
        address: The address of the cluster, or "auto" for the one of this machine; None starts Ray here.

    Yields:
        The module `ray`.

    Raises:
        InputError: Ray is not installed, there is no cluster, or it is lost; or a task raised InputError.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise InputError("ray is not installed; install simllm with its extra `ray`") from None
    _check_address(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(
            address or "local", log_to_driver=False, logging_level=logging.ERROR,
            include_dashboard=False, configure_logging=False,
        )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray cluster: {_first_line(error)}") from None
    try:
        yield ray
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise InputError(f"the Ray cluster is lost ({_first_line(error)}); {RERUN}") from None
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Check that a server answers; Ray itself would try for minutes, and then end the process."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return  # None or "auto"
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except OSError as error:
        raise InputError(f"no Ray cluster at {address} ({error})") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
