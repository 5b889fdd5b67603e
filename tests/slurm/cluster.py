"""A real SLURM cluster on this machine, with two nodes of two fake GPUs each."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

DAEMONS = ("munged", "slurmctld", "slurmd")

_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
FirstJobId={first_job}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
MinJobAge=600
KillWait=20
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
GresTypes=gpu
NodeName=DEFAULT CPUs=8 RealMemory=16384 Gres=gpu:2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]}
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 GraceTime=60
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF
"""


class Cluster:
    """A running SLURM cluster, with methods that submit, watch and disturb jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ours = ("SLURM", "SBATCH", "VIRTUAL_ENV")  # variables that the environment of the tests must not set
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            **({"VIRTUAL_ENV": sys.prefix} if sys.prefix != sys.base_prefix else {}),
            "SLURM_CONF": str(folder / "slurm.conf"),
            "MASTER_ADDR": "elsewhere.invalid",  # settings of the submitting shell that jobs must not inherit
            "MASTER_PORT": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",  # the nodes have more CPUs than this machine
        }

    def slurm(self, *command: str | Path) -> str:
        """Run a SLURM command and return its output."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def submit(self, *arguments: str | Path) -> str:
        """Submit a job from the checkout and return its number."""
        return self.slurm("sbatch", "--parsable", f"--output={self.folder}/%x-%j.out", *arguments)

    def facts(self, job: str) -> dict[str, str]:
        """Return the fields that `scontrol` shows of a job, such as JobState and Restarts."""
        words = self.slurm("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def state(self, job: str) -> str:
        """Return the state of a job: PENDING, RUNNING, COMPLETED, …"""
        return self.slurm("squeue", "-h", "-t", "all", "-o", "%T", "-j", job)

    def output(self, job: str) -> str:
        """Return the output of a job so far, including its restarts."""
        return "".join(file.read_text() for file in self.folder.glob(f"*-{job}.out"))

    def until(self, what: Callable[[], Any], job: str, seconds: float = 300, pause: float = 0.02) -> None:
        """Wait until a condition holds; look at it every `pause` seconds."""
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, f"{self.slurm('squeue', '-t', 'all')}\n{self.output(job)}"
            time.sleep(pause)

    def finish(self, job: str, state: str = "COMPLETED") -> dict[str, str]:
        """Wait until a job has ended in the given state; return its `facts`."""
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL")
        self.until(lambda: self.state(job) in ends, job, pause=0.2)  # each look starts a program of SLURM
        assert self.state(job) == state, self.output(job)
        return self.facts(job)

    def pause(self, job: str, text: str) -> None:
        """Pause the training processes of a job once they have printed the text.

        Later events then hit the job in the middle of its training, however fast the
        machine is. The processes continue after `resume`, or when SLURM asks them to end.
        """
        self.until(lambda: text in self.output(job), job)
        # Signal the step: a stopped job would not be RUNNING.
        self.slurm("scancel", "--signal=STOP", f"{job}.0")

    def ranks(self, job: str) -> dict[int, int]:
        """Return the process ids of the training processes of a job, by rank."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (place / "environ").read_bytes().decode("utf-8", "replace").split("\0")
                command = (place / "cmdline").read_bytes().split(b"\0")
                if f"SLURM_JOB_ID={job}" in variables and b"-m" in command and b"python" in command[0]:
                    rank = next(v for v in variables if v.startswith("SLURM_PROCID="))
                    found[int(rank.partition("=")[2])] = int(place.name)
        return found

    def time_is_up(self, job: str) -> None:
        """Signal the batch script of a job, as SLURM does before the time limit."""
        self.slurm("scancel", "--batch", "--signal=USR1", job)

    def set_time_limit(self, job: str, minutes: int) -> None:
        """Change the time limit of a job, counted from its start."""
        self.slurm("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}")

    def resume(self, job: str) -> None:
        """Continue the paused processes."""
        self.slurm("scancel", "--signal=CONT", f"{job}.0")


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Context manager with a running cluster; its daemons and jobs are ended afterwards."""
    cluster = Cluster(folder)
    socket_, key, gpus = folder / "munge" / "socket", folder / "munge" / "key", folder / "gpu"
    for name in ("munge", "state", "spool/n1", "spool/n2", "gpu"):
        (folder / name).mkdir(parents=True)
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    for number in range(2):
        os.mknod(gpus / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    host = socket.gethostname().split(".")[0]
    first_job = 1 + secrets.randbelow(10_000)  # the ports of jobs depend on their numbers
    conf = _CONF.format(folder=folder, host=host, ports=_free_ports(3), first_job=first_job)
    (folder / "slurm.conf").write_text(conf)
    (folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={gpus}/gpu[0-1]\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # loaded, never used

    munged = ["munged", "--foreground", "--force", f"--socket={socket_}", f"--key-file={key}"]
    munged += [f"--{name}-file={folder}/munge/{name}" for name in ("log", "pid", "seed")]
    daemons = [munged, ["slurmctld", "-D"], ["slurmd", "-D", "-N", "n1"], ["slurmd", "-D", "-N", "n2"]]
    with contextlib.ExitStack() as stack:
        for daemon in daemons:
            stack.enter_context(_daemon(daemon, cluster))
            if daemon is munged:
                _wait(socket_.exists)
        _wait(lambda: cluster.slurm("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D") == "2")
        stack.callback(_cancel_all, cluster)
        yield cluster


@contextlib.contextmanager
def _daemon(command: list[str], cluster: Cluster) -> Iterator[None]:
    """Context manager that runs a daemon with a log file, and ends it afterwards."""
    with (cluster.folder / "daemons.log").open("a") as log:
        process = subprocess.Popen(
            command, env=cluster.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cancel_all(cluster: Cluster) -> None:
    cluster.slurm("scancel", "--user=root")
    _wait(lambda: not cluster.slurm("squeue", "-h"))


def _wait(what: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "the SLURM cluster does not react"
        time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
