"""Signals before the training starts, and signals to a command that runs other commands."""

import os
import signal
import sys
import threading
from types import SimpleNamespace

import pytest

from simllm.errors import InputError
from simllm.execution.watchdog import postponed
from tests.conftest import ROOT
from train.pretrain.config import PretrainConfig
from train.runtime import signals
from train.runtime.training_run import run_training


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_error_caused_by_a_signal_is_no_input_error(call, tmp_path, number, status):
    """A run that a signal stops is reported as stopped, even if another error replaces the stop.

    The signal raises `Stopped`. A library may catch it and raise an error of its own, here an InputError.
    """

    def work(config, world, stop):
        try:
            os.kill(os.getpid(), number)
        except signals.Stopped:
            raise InputError("the input is bad") from None

    main = SimpleNamespace(__name__="x", main=lambda: run_training(PretrainConfig, work, "x", "x"))
    done = call(main, ROOT / "configs" / "debug.yaml", f"out={tmp_path}/run")
    assert (done.returncode, done.stderr) == (status, "stopped; rerun the same command to resume\n")


def test_error_during_a_stop_is_reported(call, tmp_path):
    """If a run is stopped but its state cannot be saved, for example on a full disk, the error is shown."""

    def work(config, world, stop):
        stop.after_update = True
        os.kill(os.getpid(), signal.SIGTERM)
        raise InputError("cannot be written")

    main = SimpleNamespace(__name__="x", main=lambda: run_training(PretrainConfig, work, "x", "x"))
    done = call(main, ROOT / "configs" / "debug.yaml", f"out={tmp_path}/run")
    assert (done.returncode, done.stderr) == (2, "error: cannot be written\n")


def test_postponed_signal_comes_at_the_end_of_the_block():
    ended = []

    def block():
        with postponed(signals.SIGNALS):
            signal.raise_signal(signal.SIGTERM)
            ended.append(True)
        ended.append("no signal")

    with signals.StopRequest(), pytest.raises(signals.Stopped):
        block()
    assert ended == [True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_are_forwarded_to_a_called_command(tmp_path, number):
    ready = tmp_path / "ready"
    script = (
        "import pathlib, signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(75))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)\n"
    )

    def send():
        while not ready.exists():
            pass
        os.kill(os.getpid(), number)

    threading.Thread(target=send).start()
    before = signal.getsignal(number)
    assert signals.run_forwarding_signals([sys.executable, "-c", script]) == 75
    assert signal.getsignal(number) == before


def test_status_of_a_killed_command_contains_the_signal():
    assert signals.run_forwarding_signals([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) == 137
