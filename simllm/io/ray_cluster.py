"""Connection to a Ray cluster; problems of the cluster become error messages of one line.

    python -m simllm.io.ray_cluster ADDRESS NODES

waits until the cluster has at least NODES nodes. After two minutes, the command fails with exit status 1.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simllm.errors import InputError

_PATIENCE = 10.0  # seconds to wait for a connection
RERUN = "rerun the same command to resume"


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a Ray cluster for a `with` block.

    Args:
        address: The address of the cluster, or "auto" for the cluster that runs on this machine; None starts
            a new one on this machine.

    Yields:
        The module `ray`.

    Raises:
        InputError: Ray is not installed, there is no cluster at the address, the connection is lost during
            the block, or a task raised InputError.
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
    """Check that a server answers at the address of a cluster; None and "auto" are not checked.

    Without this check, Ray would try to connect for minutes, and then end the process.
    """
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return  # None or "auto"
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except OSError as error:
        raise InputError(f"no Ray cluster at {address} ({error})") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def wait_for_nodes(address: str, count: int, patience: float = 120.0) -> None:
    """Wait until a starting cluster has enough nodes.

    Args:
        address: The address of the cluster, HOST:PORT.
        count: The smallest number of nodes.
        patience: The longest time to wait, in seconds.

    Raises:
        InputError: The cluster does not have enough nodes in time, or Ray is not installed.
    """
    end = time.monotonic() + patience
    problem = ""
    while time.monotonic() < end:
        try:
            with connected(address) as ray:
                while time.monotonic() < end:
                    found = sum(node["Alive"] for node in ray.nodes())
                    if found >= count:
                        return
                    problem = f"{found} of {count} nodes"
                    time.sleep(0.2)
        except InputError as error:
            problem = str(error)
            time.sleep(0.5)
    raise InputError(f"the Ray cluster did not start in {patience:.0f} s: {problem}")


if __name__ == "__main__":
    try:
        wait_for_nodes(sys.argv[1], int(sys.argv[2]))
    except InputError as error:
        sys.exit(f"error: {error}")
