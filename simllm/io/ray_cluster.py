"""Connection to a Ray cluster; problems of the cluster are reported as error messages of one line.

As a command, this module waits until a cluster has at least NODES nodes:

    python -m simllm.io.ray_cluster ADDRESS NODES

If the cluster has fewer nodes after two minutes, the command fails with exit status 1.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from simllm.errors import InputError
from simllm.io.packages import missing_package

_PATIENCE = 10.0  # seconds to wait for a connection
RERUN = "rerun the same command to resume"
# The first bytes of an HTTP/2 connection, with empty settings. Ray's servers (gRPC) answer with settings.
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS = 4
_START_TIMEOUT = 120  # seconds


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a Ray cluster for a `with` block, and yield the module `ray`.

    `address` is "auto" for the cluster that runs on this machine; None starts a new one. An `InputError` of a
    task on the cluster is raised here.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise InputError(missing_package("ray", "ray")) from None
    # Without this check, Ray would try to connect for minutes, and then end the process.
    _check_address(address)
    # No network unless asked: by default, Ray sends statistics of its use.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)  # `logging_level` comes after the first message
    # Ray prints its warnings to standard output, where the results go.
    with redirect_stdout(sys.stderr), _last_words():
        try:
            ray.init(
                address or "local", log_to_driver=False, logging_level=logging.ERROR,
                include_dashboard=False, configure_logging=False,
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(f"no Ray cluster: {_first_line(error)}") from None
        try:
            with _warnings(ray):
                yield ray
        except ray.exceptions.RayTaskError as error:
            # An error in the input is one line here as it is without a cluster.
            if isinstance(error.cause, InputError):
                raise error.cause from None
            raise
        except ray.exceptions.RayError as error:
            raise InputError(f"the Ray cluster is lost ({_first_line(error)}); {RERUN}") from None
        finally:
            ray.shutdown()


def _check_address(address: str | None) -> None:
    """Check that a Ray server answers at HOST:PORT; None and "auto" are not checked."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return  # None or "auto"
    try:
        with socket.create_connection((host, int(port)), _PATIENCE) as server:
            server.sendall(_HTTP2)
            answer = server.recv(4)
    except OSError as error:
        raise InputError(f"no Ray cluster at {address} ({error})") from None
    # The fourth byte of an HTTP/2 frame is its type. With TLS, the answer is another one.
    if answer[3:] != bytes([_SETTINGS]) and os.environ.get("RAY_USE_TLS", "0") == "0":
        raise InputError(f"no Ray cluster at {address} (another program answers)")


@contextmanager
def _last_words() -> Iterator[None]:
    """Print an error message if this process ends during a `with` block."""
    # Ray's C++ code may end this process without an exception, if the cluster or its node on this machine is
    # lost. Only a second process can still print then: it reads a line from this one, and gets an end of file
    # if this one is gone.
    line = f"error: this process was ended, perhaps because the Ray cluster is lost; {RERUN}"
    command = ["sh", "-c", 'read -r line || echo "$0" >&2', line]
    # A session of its own, so that Ctrl+C does not end it first.
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        watcher.communicate(b"\n")


@contextmanager
def _warnings(ray: Any) -> Iterator[None]:
    """Warn on standard error, during a `with` block, if the connected cluster has no processors."""
    ended = threading.Event()

    def watch() -> None:
        warned = False
        while not ended.wait(_PATIENCE):
            try:
                lacking = not ray.cluster_resources().get("CPU")
            except Exception:  # the cluster is lost; the main thread gets an error, too
                return
            # Not an error: an autoscaler may add machines later, and Ray waits for them.
            if lacking and not warned:
                print("warning: the Ray cluster has no processors; waiting for a node", file=sys.stderr)
            warned = lacking

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_PATIENCE)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def wait_for_nodes(address: str, count: int) -> None:
    """Wait until a cluster that is still being started has enough nodes, for at most two minutes."""
    end = time.monotonic() + _START_TIMEOUT
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
    raise InputError(f"the Ray cluster did not start in {_START_TIMEOUT} s: {problem}")


if __name__ == "__main__":
    try:
        wait_for_nodes(sys.argv[1], int(sys.argv[2]))
    except InputError as error:
        sys.exit(f"error: {error}")
