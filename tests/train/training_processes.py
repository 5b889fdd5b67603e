"""Run training commands in processes that start fast, because torch is preloaded."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import runpy
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.conftest import ROOT

SMALL = [
    "model.vocab_size=400",
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "batch_tokens=1024",
    "updates=24",
    "warmup_updates=4",
    "learning_rate=0.01",
    "evaluate_every=4",
    "test_texts=50",
]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.train.forkserver_preload"])


def pretraining(corpus_file, out, *overrides):
    """Return the arguments of a small pretraining."""
    return ["configs/debug.yaml", f"out={out}", f"corpus.sources=[{corpus_file}]", *SMALL, *overrides]


class TrainingProcess:
    """A process that runs `python -m MODULE ARGUMENTS` in the folder `cwd`, with one thread.

    No file that the process writes may be larger than `largest` bytes. The process pauses as soon as it has
    written the text `pause_at` to standard error; it continues with the next signal. Thus a test can signal
    it in the middle of its training, however fast the machine is.
    """

    def __init__(self, folder, module, *arguments, cwd=ROOT, largest=None, pause_at=None, **environment):
        folder.mkdir(exist_ok=True)
        number = len(list(folder.iterdir()))
        self.files = [folder / f"{module}-{number}.{stream}" for stream in ("out", "err")]
        for file in self.files:
            file.touch()
        arguments = [module, *map(str, arguments)]
        environment = {"OMP_NUM_THREADS": "1"} | environment
        self.pause_at = pause_at
        self.process = _CONTEXT.Process(
            target=_main, args=(arguments, self.files, cwd, largest, pause_at, environment)
        )
        self.process.start()
        self.pid = self.process.pid

    @property
    def output(self):
        """Return the standard output of the process so far."""
        return self.files[0].read_text(encoding="utf-8")

    @property
    def errors(self):
        """Return the standard error of the process so far."""
        return self.files[1].read_text(encoding="utf-8", errors="replace")

    def until_written(self, text, seconds=120):
        """Wait until the process has written a text to standard error."""
        self.until(lambda: text in self.errors, seconds)

    def until_paused(self):
        """Wait for the pause of a process that was started with `pause_at`."""
        self.until(lambda: is_paused(self.pid))

    def signal(self, number):
        """Send a signal; a process that was started with `pause_at` gets it in its pause, and continues."""
        if self.pause_at:
            self.until_paused()
        os.kill(self.pid, number)
        if self.pause_at and number != signal.SIGKILL:
            os.kill(self.pid, signal.SIGCONT)

    def until(self, condition, seconds=120):
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.is_alive(), self.errors
            assert time.monotonic() < end, self.errors
            time.sleep(0.005)

    def finish(self, seconds=120):
        """Wait for the end of the process; return its exit status, negative if a signal killed it."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"still running: {self.errors}"
        return self.process.exitcode


def is_paused(pid):
    """Return whether a process has stopped at SIGSTOP."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


class _PausingStream:
    """A text stream that pauses the process once, as soon as a text has been written to it."""

    def __init__(self, stream, pause_at):
        self.stream = stream
        self.pause_at = pause_at
        self.written = ""

    def write(self, text):
        self.stream.write(text)
        self.written += text
        if self.pause_at and self.pause_at in self.written:
            self.pause_at = None
            self.stream.flush()
            os.kill(os.getpid(), signal.SIGSTOP)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def _main(arguments, files, cwd, largest, pause_at, environment):
    for stream, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), stream)
    sys.stdout, errors = (open(stream, "w", buffering=1, closefd=False) for stream in (1, 2))  # noqa: SIM115
    sys.stderr = _PausingStream(errors, pause_at)
    os.chdir(cwd)
    os.environ.update(environment)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    torch.set_num_threads(1)
    sys.argv = arguments
    for name in (arguments[0], f"{arguments[0]}.__main__"):
        sys.modules.pop(name, None)  # it is loaded, but not as `__main__`
    status = 0
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)  # a normal exit takes longer than many tests


class Runner:
    """Starts training commands, and stores their output in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, module, *arguments, **options):
        return TrainingProcess(self.folder, module, *arguments, **options)

    def __call__(self, module, *arguments, **options):
        """Run a command to its end; return its exit status and its standard error."""
        started = self.start(module, *arguments, **options)
        return started.finish(), started.errors

    def ranks(self, count, module, *arguments, folders=None, pause_at=None, **environment):
        """Start the processes of one training, as torchrun and srun do, each in its own folder if given.

        The first process pauses as soon as it has written the text `pause_at`.
        """
        group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        started = []
        for rank, folder in enumerate(folders or [ROOT] * count):
            place = group | {"RANK": str(rank), "LOCAL_RANK": str(rank)} | environment
            pause = pause_at if rank == 0 else None
            started.append(self.start(module, *arguments, cwd=folder, pause_at=pause, **place))
        return started


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def log(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def without_times(lines):
    """Return the log without values that depend on the clock."""
    clock = ("seconds", "tokens_per_second", "mfu")
    return [{key: value for key, value in line.items() if key not in clock} for line in lines]


def states(out):
    """Return the folders of the saved states, oldest first."""
    return sorted((out / "states").glob("state-*"))


def weights(out):
    return load_file(states(out)[-1] / "tensors.safetensors")


def assert_same_weights(out, other):
    one, two = weights(out), weights(other)
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def content(folder):
    """Return the content of every file below a folder."""
    return {file.relative_to(folder): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}
