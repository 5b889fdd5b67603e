"""Attacks on a sandbox from inside; a script that runs in the sandbox, where simllm does not exist.

Each attack returns how it succeeded, or "" if the sandbox prevented it; the script prints a JSON object of
these texts. Arguments: a word that marks the script's processes, the network namespace of the machine, the
size limit of a writable folder in bytes, the largest number of processes, and the paths of the machine that
programs may read.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import resource
import socket
import sys
import time
from pathlib import Path

ALLOWED_VARIABLES = (
    *("PATH", "HOME", "LANG", "PWD", "OLDPWD"),
    *("PYTHONHASHSEED", "PYTHONINTMAXSTRDIGITS", "OMP_NUM_THREADS"),
)
_MS_REMOUNT_BIND = 32 | 4096
_CLONE_NEWUSER = 0x10000000
_PTRACE_SEIZE = 0x4206
_PART = 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)
_FAMILIES = 46
_KINDS_OF_SOCKETS = (1, 2, 3, 4, 5)
_NOTHING = (0, 0, 0, 0)
# The numbers of these calls are the same on all architectures.
_KERNEL_CALLS = {
    "io_uring_setup": (425, (1, ctypes.create_string_buffer(256))),
    "landlock_create_ruleset": (444, (None, 0, 1)),
}
if os.uname().machine in ("x86_64", "aarch64"):
    _NUMBERS = {
        "bpf": (321, 280),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "pidfd_getfd": (438, 438),
        "userfaultfd": (323, 282),
        "perf_event_open": (298, 241),
        "syslog": (103, 116),
    }
    for _name, _both in _NUMBERS.items():
        _KERNEL_CALLS[_name] = (_both[os.uname().machine == "aarch64"], _NOTHING)
    _KERNEL_CALLS["ptrace"] = (101 if os.uname().machine == "x86_64" else 117, (_PTRACE_SEIZE, *_NOTHING[1:]))
_MEMORY_CALLS = {
    "memfd_create": lambda: _LIBC.memfd_create(b"attack", 0),
    "memfd_secret": lambda: _LIBC.syscall(447, 0),
    "shmget": lambda: _LIBC.shmget(0, 4096, 0o1600),
    "vmsplice": lambda: _LIBC.vmsplice(os.pipe()[1], None, 0, 0),
}
_X32_GETPID = 0x40000000 + 39
_I386_GETPID = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20; int 0x80; ret


def write_to_the_system(readable: list[str]) -> str:
    """Try to make all mounts writable, and to make files in folders of the machine."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _LIBC.mount(b"none", line.split()[1].encode(), None, _MS_REMOUNT_BIND, None)
    folders = ("/", "/usr", "/usr/bin", "/etc", "/lib", "/dev", "/proc/sys/kernel", "/sys", "/home", "/root")
    return ", ".join(folder for folder in (*folders, *readable) if _can_write(folder))


def fill_memory_with_files(most: int, readable: list[str]) -> str:
    """Try to write more than `most` bytes into any folder, since files in memory would use it up."""
    for top, folders, _ in os.walk("/"):
        skipped = {Path("/proc"), Path("/usr"), *map(Path, readable)}
        folders[:] = [name for name in folders if Path(top, name) not in skipped]
        if _can_write(top) and _fill(top, most) > most:
            return f"{top} took more than {most} bytes"
    return ""


def _fill(folder: str, most: int) -> int:
    """Write files until they exceed `most` bytes or writing fails; delete them, and return the bytes."""
    written = number = 0
    try:
        while written <= most:
            with Path(folder, f"filling{number}").open("wb") as file:
                written += file.write(bytes(_PART))
            number += 1
    except OSError:
        pass
    for n in range(number + 1):
        Path(folder, f"filling{n}").unlink(missing_ok=True)
    return written


def _can_write(folder: str) -> bool:
    file = Path(folder, "simllm-attack")
    try:
        file.touch()
        file.unlink()
    except OSError:
        return False
    return True


def read_the_machine(readable: list[str]) -> str:
    """Look for private paths of the machine, such as /home and /etc/shadow."""
    paths = ("/etc/shadow", "/etc/passwd", "/home", "/root", "/var", "/run", "/sys", "/mnt", "/opt")
    allowed = {str(parent) for path in readable for parent in (Path(path), *Path(path).parents)}
    return ", ".join(path for path in paths if Path(path).exists() and path not in allowed)


def read_environments() -> str:
    """Look for variables that leaked into the environment of any visible process."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            found |= {item.partition(b"=")[0].decode() for item in file.read_bytes().split(b"\0") if item}
        except OSError:
            continue
    return ", ".join(sorted(found - set(ALLOWED_VARIABLES)))


def see_other_processes() -> str:
    """Look for processes besides this one, and into the folder of the first process of the sandbox."""
    others = {path.name for path in Path("/proc").glob("[0-9]*")} - {"1", str(os.getpid())}
    others |= {path.name for path in Path("/proc/1").glob("[a-z]*")}
    return f"{len(others)} processes are visible" if others else ""


def inherit_open_files() -> str:
    """Look for open files besides the standard streams."""
    # Descriptor 3 is the listing of the folder itself.
    return ", ".join(sorted({path.name for path in Path("/proc/self/fd").iterdir()} - {"0", "1", "2", "3"}))


def reach_the_network(outside: str) -> str:
    """Try sockets of all families, and look for the machine's network namespace."""
    # No address is needed: some families, such as AF_VSOCK, reach the machine in spite of a namespace.
    reached = ["the network of the machine"] if str(Path("/proc/self/ns/net").readlink()) == outside else []
    # Event loops need pairs of Unix sockets, so these are allowed.
    for family in range(_FAMILIES):
        if any(_opens(family, kind) for kind in _KINDS_OF_SOCKETS):
            reached.append(f"sockets of family {family}")
        elif family != socket.AF_UNIX and any(_opens_pair(family, kind) for kind in _KINDS_OF_SOCKETS):
            reached.append(f"pairs of sockets of family {family}")
    return ", ".join(reached)


def _opens(family: int, kind: int) -> bool:
    try:
        socket.socket(family, kind).close()
    except OSError:
        return False
    return True


def _opens_pair(family: int, kind: int) -> bool:
    try:
        for one in socket.socketpair(family, kind):
            one.close()
    except OSError:
        return False
    return True


def gain_rights() -> str:
    """Look for ways to the rights of root: capabilities, setuid programs, user namespaces."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    gained = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd") if int(status[name], 16)]
    if "0" in (status["Uid"].split()[0], status["NoNewPrivs"].strip()):
        gained.append("programs of root")
    if _LIBC.unshare(_CLONE_NEWUSER) == 0:
        gained.append("a user namespace")
    return ", ".join(gained)


def raise_limits() -> str:
    """Try to remove the resource limits of this process."""
    raised = []
    for name in ("CPU", "FSIZE", "AS", "NPROC", "NOFILE"):
        limit = getattr(resource, f"RLIMIT_{name}")
        try:
            resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            raised.append(name)
        except (ValueError, OSError):
            pass
    with contextlib.suppress(OSError):
        resource.prlimit(1, resource.RLIMIT_CORE)
        raised.append("those of other processes")
    return ", ".join(raised)


def hide_memory() -> str:
    """Try to allocate memory that counts towards no limit, or stays allocated after it was given back."""
    taken = [name for name, call in _MEMORY_CALLS.items() if call() >= 0]
    with contextlib.suppress(OSError):
        mmap.mmap(-1, mmap.PAGESIZE).close()  # shared and anonymous
        taken.append("anonymous shared memory")
    with contextlib.suppress(OSError), Path("/dev/zero").open("r+b") as zero:
        mmap.mmap(zero.fileno(), mmap.PAGESIZE).close()
        taken.append("shared memory of /dev/zero")
    left, right = socket.socketpair()
    with left, right, contextlib.suppress(OSError):
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        taken.append("large buffers of sockets")
    return ", ".join(taken)


def use_refused_calls() -> str:
    """Try system calls that have often been a way into the kernel, also by the entries of older programs."""
    used = []
    for name, (number, arguments) in _KERNEL_CALLS.items():
        ctypes.set_errno(0)
        if _LIBC.syscall(number, *arguments) >= 0 or ctypes.get_errno() != errno.ENOSYS:
            used.append(name)
    if os.uname().machine == "x86_64":
        if _LIBC.syscall(_X32_GETPID) >= 0:
            used.append("calls of x32")
        if _calls_as_i386():
            used.append("calls of i386")
    return ", ".join(used)


def _calls_as_i386() -> bool:
    """Call getpid by `int 0x80`, in a new process, since the call kills it where the kernel lacks i386."""
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
        code.write(_I386_GETPID)
        call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        os._exit(call() <= 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def start_many_processes(most: int) -> str:
    """Try to start more than `most` processes, which also try to outlive this script."""
    for number in range(most + 1):
        try:
            # The self-test looks afterwards for processes that outlived the run.
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
                os._exit(0)
        except OSError:
            return ""
        if number == most:
            return f"more than {most} processes"
    return ""


if __name__ == "__main__":
    _, network, folder_size, processes, *readable = sys.argv[1:]
    results = {
        "read files of the machine": read_the_machine(readable),
        "read environment variables": read_environments(),
        "see other processes": see_other_processes(),
        "use open files": inherit_open_files(),
        "reach the network": reach_the_network(network),
        "gain rights": gain_rights(),
        "raise limits": raise_limits(),
        "write to the system": write_to_the_system(readable),
        "fill the memory with files": fill_memory_with_files(int(folder_size), readable),
        "hide memory": hide_memory(),
        "use refused system calls": use_refused_calls(),
        "start processes without end": start_many_processes(int(processes)),
    }
    print(json.dumps(results))
