"""Signals and kills that come at the worst moment."""

import os
import subprocess
import sys
import time

import pytest

from tests.command import is_running

SLEEPS_THROUGH = """
import os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from simllm.execution.watchdog import as_ended

def work():
    time.sleep(0.5)
    # To another thread than the main one, whose sleep it does not end: as if it came just before the sleep.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(60)

future = ThreadPoolExecutor(1).submit(work)
try:
    list(as_ended([future]))
except KeyboardInterrupt:
    os._exit(0 if not future.done() else 1)
"""

KILLED = """
import os, signal, subprocess
from simllm.execution.watchdog import Watchdog

class Killed(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        if "preexec_fn" in options:
            print(self.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen = Killed
with Watchdog() as watchdog:
    watchdog.start(["sleep", "600"], stdout=subprocess.DEVNULL)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_a_signal_just_before_the_wait_ends_it():
    done = subprocess.run([sys.executable, "-c", SLEEPS_THROUGH], timeout=50, check=False)
    assert done.returncode == 0


def test_a_command_ends_though_its_parent_was_killed_as_soon_as_it_ran():
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -9
    command = int(done.stdout)
    try:
        deadline = time.monotonic() + 30
        while is_running(command):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        if is_running(command):
            os.kill(command, 9)
