"""Runs that are killed at any moment, and resumed."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from simllm import repair
from tests.repair.programs import by_content, items

ATTEMPTS = 2


def recorded(folder):
    """Count the recorded replies (complete lines of the file) to each request."""
    file = folder / "replies.jsonl"
    text = file.read_bytes() if file.exists() else b""
    requests = (json.loads(line)["request"] for line in text.split(b"\n")[:-1])
    return Counter(request["messages"] for request in requests)


def key(body):
    text = json.dumps(body["messages"], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.slow
def test_ten_kills_end_in_the_uninterrupted_results(server, sandbox, write_items, tmp_path):
    """The server also sends errors (429, 500) and cuts connections; no recorded reply is requested again."""
    file = write_items(*items(24))
    server.reply = by_content
    repair.run(
        file, tmp_path / "whole", model="M", base_url=f"{server.url}/v1", attempts=ATTEMPTS, parallel=4
    )

    chance = random.Random(0)

    def reply(body):
        kind = chance.random()
        if kind < 0.03:
            return 429, {"Retry-After": "0.05"}, b"{}"
        if kind < 0.06:
            return 500, {}, b"{}"
        return None if kind < 0.09 else by_content(body)

    server.reply, server.delay = reply, 0.03
    command = [sys.executable, "-m", "simllm", "repair", "run", str(file), "--base-url", f"{server.url}/v1"]
    command += [
        "--model",
        "M",
        "--attempts",
        str(ATTEMPTS),
        "--parallel",
        "3",
        "-o",
        str(tmp_path / "killed"),
    ]
    kills = 0
    while kills < 10:
        before = recorded(tmp_path / "killed")
        server.requests.clear()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = time.monotonic()
        wanted = before.total() + chance.randrange(1, 6)
        while process.poll() is None and recorded(tmp_path / "killed").total() < wanted:
            time.sleep(0.005)
            assert time.monotonic() - begun < 100
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(chance.random() * 0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        check_asked(server, before)
    before = recorded(tmp_path / "killed")
    server.requests.clear()
    status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    while status == 1:  # five retries in a row may fail
        status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    assert status == 0
    for name in ("results.jsonl", "summary.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def check_asked(server, before):
    """Check that the server got no request of which all replies, one for each attempt, were on record."""
    asked = {key(body) for _, _, body in server.requests}
    assert not {one for one in asked if before[one] >= ATTEMPTS}
