"""Functions that find bubblewrap (bwrap), a tool that isolates a program, and build its command line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.resource_limits import Limits
from simllm.execution.sandbox_environment import BOX, ENVIRONMENT, SEARCH_PATH

INSTALL_BUBBLEWRAP = "apt-get install bubblewrap (0.8 or newer; see docs/sandbox.md)"
SIZED_FOLDERS = (BOX, "/tmp", "/dev/shm")
_SYSTEM_FOLDERS = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")  # links into /usr, or folders
_CONFIGURATION = ("alternatives", "java*", "ld.so.cache")  # in /etc; java is a link through /etc/alternatives
_MIB = 1 << 20


def find_bubblewrap() -> str:
    """Return the path of the program bwrap (bubblewrap), which starts sandboxes.

    The function also checks that Python is installed in a system folder. The self-test of a sandbox needs
    Python, because a Python script attacks the sandbox.

    Raises:
        InputError: bubblewrap or Python is not installed.
    """
    bwrap = shutil.which("bwrap", path=os.pathsep.join((os.environ.get("PATH", ""), SEARCH_PATH)))
    if bwrap is None:
        raise InputError(f"bubblewrap is not installed: {INSTALL_BUBBLEWRAP}")
    if shutil.which("python3", path=SEARCH_PATH) is None:
        raise InputError(f"no python3 in {SEARCH_PATH}, which attacks the sandbox: apt-get install python3")
    return bwrap


def bwrap_command(
    bwrap: str, limits: Limits, readable: Sequence[str], status: int, seccomp: int
) -> list[str]:
    """Build the command line of bubblewrap; the caller appends the program to run and its arguments.

    The sandbox has an empty root folder in memory. /usr, a few entries of /etc and the `readable` paths of
    the machine are visible in it, read-only. The folders that a program can write to are in memory, and their
    size is limited.

    Args:
        bwrap: The path of the program bwrap.
        limits: The limits of the run. Only `disk`, the size of each writable folder, is used here.
        readable: Further paths of the machine that the program may read.
        status: The file descriptor to which bwrap writes its status.
        seccomp: The file descriptor from which bwrap reads the filter of system calls.

    Returns:
        The path of bwrap and its options.
    """
    command = [bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
    command += ["--new-session", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"]
    command += ["--ro-bind", "/usr", "/usr"]
    for path in (Path("/", name) for name in _SYSTEM_FOLDERS):
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            command += ["--ro-bind", str(path), str(path)]
    for path in (path for pattern in _CONFIGURATION for path in sorted(Path("/etc").glob(pattern))):
        command += ["--ro-bind", str(path), str(path)]
    command += ["--proc", "/proc", "--tmpfs", "/dev"]
    # No terminals, of which the machine has a limited number. Shared mappings of /dev/zero would be memory
    # that no limit counts; /dev/full holds zeros, too, but cannot be mapped.
    for name in ("null", "full", "random", "urandom"):
        command += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    command += ["--dev-bind", "/dev/full", "/dev/zero", "--symlink", "/proc/self/fd", "/dev/fd"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        command += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    for folder in SIZED_FOLDERS:
        command += ["--size", str(limits.disk * _MIB), "--tmpfs", folder]
    for name in readable:
        command += ["--ro-bind", name, name]
    # /dev and the root are in memory, too, but have no size.
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", BOX]
    command += [word for variable in ENVIRONMENT.items() for word in ("--setenv", *variable)]
    return [*command, "--json-status-fd", str(status), "--seccomp", str(seccomp), "--"]
