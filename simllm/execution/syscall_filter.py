"""Filter that refuses some system calls of programs in the sandbox, by the Linux mechanism seccomp."""

from __future__ import annotations

import platform
import struct

# These calls take memory that does not count towards any limit of a process (memfd_create, memfd_secret,
# shmget, msgget, semget, add_key, request_key, keyctl), or have often been a way into the kernel (bpf,
# userfaultfd, perf_event_open, io_uring_setup). Neither compilers nor ordinary programs need them.
_REFUSED = {
    "x86_64": (0xC000003E, (319, 447, 29, 68, 64, 248, 249, 250, 321, 323, 298, 425)),
    "aarch64": (0xC00000B7, (279, 447, 194, 186, 190, 217, 218, 219, 280, 282, 241, 425)),
}
_FIRST_X32_CALL = 0x40000000  # x86_64 has a second set of numbers from here on
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of BPF
_CALL_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_ALLOW, _NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | 38  # 38 is ENOSYS


def seccomp_program() -> bytes:
    """Build a seccomp filter: instructions that tell the kernel which system calls to refuse.

    The instructions are a program for the kernel's BPF interpreter. The filter refuses three kinds of system
    calls; they fail with the error ENOSYS:

    - calls that allocate memory outside of the memory limits of a process, such as shared memory
    - calls that have often been used to attack the kernel
    - calls for another processor architecture than that of this machine

    Returns:
        The instructions for this machine's processor; b"" if the processor is not supported.
    """
    if platform.machine() not in _REFUSED:
        return b""
    architecture, refused = _REFUSED[platform.machine()]
    n = len(refused)  # the instruction of the refusal has number n + 5; a jump is relative to the next one
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, n + 3, architecture)]
    program += [(_LOAD, 0, 0, _CALL_NUMBER), (_AT_LEAST, n + 1, 0, _FIRST_X32_CALL)]
    program += [(_EQUAL, n - position, 0, call) for position, call in enumerate(refused)]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NO_SUCH_CALL)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
