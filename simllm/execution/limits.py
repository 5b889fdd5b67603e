"""Limits of a run in the sandbox: processor time, memory, output, files and number of processes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from simllm.errors import InputError

_ADDRESS_SPACE = 4096  # MiB above the memory limit; it limits the growth between two measurements
_STACK = 64  # MiB
_OPEN_FILES = 128
_TIMERS = 1024  # timers and queued signals, which the kernel keeps in memory of its own
_HIGHEST = 10**9
MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits for one run of a command, which may start further processes.

    Attributes:
        time: Seconds of processor time, for all processes together.
        memory: MiB of resident memory, for all processes together.
        output: Largest number of bytes on standard output, and separately on standard error.
        disk: Size in MiB of each writable folder: the working folder, `/tmp` and `/dev/shm`.
        processes: Largest number of processes and threads that exist at the same time.
    """

    time: float = 10.0
    memory: int = 256
    output: int = 1 << 24
    disk: int = 64
    processes: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value == math.inf or not value > 0:
                raise InputError(f"limit {name}: expected a positive number, not {value!r}")
            if value > _HIGHEST:
                raise InputError(f"limit {name}: expected at most {_HIGHEST}")

    @property
    def wall_time(self) -> float:
        """Seconds of real time after which a run is stopped, for example because it waits forever."""
        return 2 * self.time + 1


# The limits of compilers.
COMPILE_LIMITS = Limits(time=30, memory=1024, output=1 << 20, disk=256)


def prlimit_options(limits: Limits, count_processes: bool) -> list[str]:
    """Return options of the program `prlimit`: a run's limits, but at most what this process may have itself.

    `count_processes` also limits processes and timers.
    """
    import resource  # late: Windows lacks it, and limits can be read there all the same

    wanted = {
        "as": (limits.memory + _ADDRESS_SPACE) * MIB,
        "core": 0,
        "cpu": math.floor(limits.time) + 1,
        "fsize": limits.disk * MIB,
        "nofile": _OPEN_FILES,
        "stack": _STACK * MIB,
    }
    if count_processes:
        # Outside of a sandbox, the kernel would count those of the user, not only those of the run.
        wanted |= {"nproc": limits.processes, "sigpending": _TIMERS}
    options = []
    for name, value in wanted.items():
        highest = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        # prlimit fails if a limit is above the hard limit of this process.
        options.append(f"--{name}={value if highest == resource.RLIM_INFINITY else min(value, highest)}")
    return options
