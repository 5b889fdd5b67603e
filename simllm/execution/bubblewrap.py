"""Bubblewrap, which starts sandboxes: its command line, and the filter of system calls (seccomp)."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.limits import MIB, Limits
from simllm.execution.messages import BOX, ENVIRONMENT, SEARCH_PATH
from simllm.io.packages import require_linux

# In the order of _ARCHITECTURES. Neither compilers nor ordinary programs need these calls.
_REFUSED = (
    # They take memory that counts towards no limit of a process:
    *("memfd_create", "memfd_secret", "shmget", "msgget", "semget", "mq_open", "add_key", "request_key"),
    *("keyctl", "io_setup", "landlock_create_ruleset"),
    # they keep pages in pipes and sockets that nobody maps any more,
    *("vmsplice", "tee", "splice"),
    # they reach into other processes, such as the first one of the sandbox, which has no limits,
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    # they have often been a way into the kernel, or tell what it does.
    *("bpf", "userfaultfd", "perf_event_open", "io_uring_setup", "syslog"),
)
_ARCHITECTURES = {  # the kernel's name of the architecture, and the number of each system call
    "x86_64": (
        0xC000003E,
        (
            *(319, 447, 29, 68, 64, 240, 248, 249, 250, 206, 444),
            *(278, 276, 275, 101, 310, 311, 438, 321, 323, 298, 425, 103),
        ),
        {"socket": 41, "socketpair": 53, "setsockopt": 54, "sendfile": 40, "mmap": 9, "prlimit64": 302},
    ),
    "aarch64": (
        0xC00000B7,
        (
            *(279, 447, 194, 186, 190, 180, 217, 218, 219, 0, 444),
            *(75, 77, 76, 117, 270, 271, 438, 280, 282, 241, 425, 116),
        ),
        {"socket": 198, "socketpair": 199, "setsockopt": 208, "sendfile": 71, "mmap": 222, "prlimit64": 261},
    ),
}
_FIRST_X32_CALL = 0x40000000  # x86_64 has a second set of numbers from here on
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # instructions of BPF
_CALL_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_AF_UNIX = 1
_SHARED, _ANONYMOUS, _HUGE = 0x01, 0x20, 0x40000  # flags of mmap

_Instruction = tuple[int, int, int, int]


def seccomp_program() -> bytes:
    """Build the seccomp filter: BPF instructions with which the kernel checks each system call.

    Besides the calls in `_REFUSED` and those of other processor architectures, it refuses sockets but pairs
    of Unix sockets, memory that limits do not see, and changes of the limits of other processes. Return b""
    for an unsupported processor.
    """
    if platform.machine() not in _ARCHITECTURES:
        return b""
    architecture, refused, numbers = _ARCHITECTURES[platform.machine()]
    assert len(refused) == len(_REFUSED)
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), _fail(errno.ENOSYS)]
    program += [(_LOAD, 0, 0, _CALL_NUMBER), (_AT_LEAST, 0, 1, _FIRST_X32_CALL), _fail(errno.ENOSYS)]
    for number in refused:
        program += _if(number, [_fail(errno.ENOSYS)])
    # Pairs of Unix sockets remain, because event loops need them. Network namespaces do not isolate every
    # family: AF_VSOCK reaches the hypervisor of a virtual machine.
    program += _if(numbers["socket"], [_fail(errno.EAFNOSUPPORT)])
    program += _if(numbers["setsockopt"], [_fail(errno.ENOPROTOOPT)])  # it enlarges buffers of sockets
    # EINVAL is the error after which programs copy a file themselves.
    program += _if(numbers["sendfile"], [_fail(errno.EINVAL)])
    pair = [_argument(0), (_EQUAL, 1, 0, _AF_UNIX), _fail(errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    program += _if(numbers["socketpair"], pair)
    own = [_argument(0), (_EQUAL, 1, 0, 0), _fail(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    program += _if(numbers["prlimit64"], own)
    # Anonymous shared memory stays allocated after a process gave it back by `madvise`, so that the resident
    # memory does not show it; nor does it show huge pages.
    for flags in (_SHARED | _ANONYMOUS, _HUGE):
        taken = [_argument(3), (_AND, 0, 0, flags), (_EQUAL, 0, 1, flags), _fail(errno.EPERM)]
        program += _if(numbers["mmap"], [*taken, (_LOAD, 0, 0, _CALL_NUMBER)])
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _if(number: int, block: Sequence[_Instruction]) -> list[_Instruction]:
    """Run a block of instructions for one system call, and skip it for all others."""
    return [(_EQUAL, 0, len(block), number), *block]


def _fail(error: int) -> _Instruction:
    return (_RETURN, 0, 0, _FAIL | error)


def _argument(place: int) -> _Instruction:
    """Load the lower half of an argument; the kernel uses no more of families and flags."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place)


INSTALL_BUBBLEWRAP = "apt-get install bubblewrap (0.8 or newer; see docs/sandbox.md)"
SIZED_FOLDERS = (BOX, "/tmp", "/dev/shm")
_SYSTEM_FOLDERS = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")  # links into /usr, or folders
_CONFIGURATION = ("alternatives", "java*", "ld.so.cache")  # in /etc; java is a link through /etc/alternatives


def find_bubblewrap() -> str:
    """Return the path of bwrap, or raise `InputError` if bwrap or Python is not installed."""
    require_linux("the sandbox")
    bwrap = shutil.which("bwrap", path=os.pathsep.join((os.environ.get("PATH", ""), SEARCH_PATH)))
    if bwrap is None:
        raise InputError(f"bubblewrap is not installed: {INSTALL_BUBBLEWRAP}")
    # The self-test attacks the sandbox by a Python script.
    if shutil.which("python3", path=SEARCH_PATH) is None:
        raise InputError(f"no python3 in {SEARCH_PATH}, which attacks the sandbox: apt-get install python3")
    return bwrap


def bwrap_command(
    bwrap: str, limits: Limits, readable: Sequence[str], status: int, seccomp: int
) -> list[str]:
    """Build the command line of bubblewrap; the caller appends the program to run and its arguments.

    /usr, a few entries of /etc and the `readable` paths are visible, read-only, in an empty root. All that a
    program can write to is in memory, up to the limit `disk`. bwrap writes its status to the descriptor
    `status`, and reads the filter of system calls from `seccomp`.
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
    # The first process is bwrap's own, and has no limits: programs must not open its files or its memory.
    command += ["--proc", "/proc", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1", "--tmpfs", "/dev"]
    # No terminals: the machine has a limited number. Shared mappings of /dev/zero would be memory
    # that no limit counts; /dev/full holds zeros, too, but cannot be mapped.
    for name in ("null", "full", "random", "urandom"):
        command += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    command += ["--dev-bind", "/dev/full", "/dev/zero", "--symlink", "/proc/self/fd", "/dev/fd"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        command += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    for folder in SIZED_FOLDERS:
        command += ["--size", str(limits.disk * MIB), "--tmpfs", folder]
    for name in readable:
        command += ["--ro-bind", name, name]
    # /dev and the root are in memory, too, but have no size.
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", BOX]
    command += [word for variable in ENVIRONMENT.items() for word in ("--setenv", *variable)]
    return [*command, "--json-status-fd", str(status), "--seccomp", str(seccomp), "--"]
