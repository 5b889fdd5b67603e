"""Description of the machine that runs a benchmark, and measurement of memory use."""

import ctypes
import datetime
import gc
import json
import os
import platform
import sys
from pathlib import Path

import torch

import simllm


def facts():
    """Describe a run of a benchmark for its results: the date, the command, the hardware and the versions."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    return {
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["python -m", __package__ + "." + Path(sys.argv[0]).stem, *sys.argv[1:]]),
        "cpu": f"{os.cpu_count()} x {cpu}, {torch.get_num_threads()} threads",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "simllm": simllm.__version__,
        },
    }


class PeakMemory:
    """Context manager that measures by how many bytes memory use rises at most; `peak` is the result."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self.before = torch.cuda.memory_allocated(self.device)
        else:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
            self.before = _resident("VmRSS")
        return self

    def __exit__(self, *_):
        now = (
            torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else _resident("VmHWM")
        )
        self.peak = now - self.before


def _resident(name):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith(name)).split()[1])


def write(file, **results):
    """Write results as JSON, with the description of the run by `facts`."""
    Path(file).write_text(json.dumps(facts() | results, indent=2) + "\n")
