"""Benchmark of repair: requests per second to a slow endpoint, and the time to replay a recorded run.

python -m tests.benchmarks.repair
python -m tests.benchmarks.repair --json tests/benchmarks/results/repair-cpu.json
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

from simllm import repair
from tests.benchmarks import machine
from tests.chat_server import chat_server
from tests.repair.programs import WRONG, fenced, items

DELAY, PARALLEL = 0.2, 32  # seconds before each answer; attempts at the same time


def serve(pipe, delay):
    """Run an endpoint that answers after a delay; each reply is a different incorrect program."""
    with chat_server() as server:
        server.delay = delay
        server.reply = lambda prompt: fenced(f"number = {time.monotonic_ns()}\n{WRONG}")
        pipe.send(server.url)
        pipe.recv()


class Endpoint:
    """An endpoint that runs in another process, so that it does not slow the client down."""

    def __init__(self, delay):
        self.delay = delay

    def __enter__(self):
        self.pipe, there = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(there, self.delay))
        self.process.start()
        return f"{self.pipe.recv()}/v1"

    def __exit__(self, *_):
        self.pipe.send(None)
        self.process.join()


def write_items(folder, rows):
    file = Path(folder) / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def request_rate(folder, requests):
    """Measure the requests per second when the model is asked for summaries, so that no programs are run."""
    rows = [{"id": f"{n}", "code": f"x = {n}", "reference": "sets x"} for n in range(requests)]
    file = write_items(folder, rows)
    with Endpoint(DELAY) as url:
        times = []
        repair.run(
            file, Path(folder) / "rate", model="M", base_url=url, strategy="single", attempts=1,
            judge="jaccard", bar=2.0, parallel=PARALLEL,
            progress=lambda done, total: times.append(time.perf_counter()),
        )  # fmt: skip
    seconds = times[-1] - times[0] + DELAY
    possible = PARALLEL / DELAY
    return {"requests a second": requests / seconds, "share of the possible": requests / seconds / possible}


def replay_time(folder, rounds):
    """Record a run of about `rounds` rounds, three in each attempt; measure the time to replay it."""
    file = write_items(folder, items(max(1, rounds // 15)))
    with Endpoint(0) as url:
        repair.run(file, Path(folder) / "run", model="M", base_url=url, attempts=5, parallel=8)
    begun = time.perf_counter()
    summary = repair.run(file, Path(folder) / "again", replay=Path(folder) / "run")
    return {"rounds": summary["figures"]["requests"], "seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=1600, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=15_000, help="of the replay; default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {"endpoint": request_rate(folder, options.requests)}
    print(json.dumps(results, indent=1), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results["replay"] = replay_time(folder, options.rounds)
    print(json.dumps(results, indent=1))
    if options.json:
        machine.write(options.json, **results)
