"""Load test of `simllm serve`: pairs a second and the time to an answer, by the number of clients.

    python -m tests.benchmarks.serve
    python -m tests.benchmarks.serve --json tests/benchmarks/results/serve-cpu.json

Each client keeps a connection and sends one pair after another, each in a request of its own. All texts of a
run differ, so that nothing is scored once for two clients. The same pairs are also scored by one call of the
class, before and after, to show what HTTP and small batches cost; processor time compares them on a busy
machine, too. At the end, the server gets SIGTERM while the most clients send; `lost` counts requests that
were sent but not answered. Clients and server share the processors.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

# As in the command, which scores in the server: threads that wait for others use no processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from simllm import SimLLM
from tests.benchmarks import machine
from tests.benchmarks.score import pairs


class Load:
    """Clients of a server: the seconds that answers took, and what became of the other requests."""

    def __init__(self, port, requests):
        self.port, self.requests = port, iter(requests)
        self.seconds, self.refused, self.lost = [], 0, []

    async def client(self, ends_at):
        """Send requests one after another until a time; connect anew if the server closes the connection."""
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                self.refused += 1
                return
            is_open = True
            while is_open:
                body = next(self.requests, None)
                if body is None or time.perf_counter() > ends_at:
                    writer.close()
                    return
                started = time.perf_counter()
                try:
                    writer.write(
                        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
                    )
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
                    reply = json.loads(await reader.readexactly(length))
                    assert head.startswith(b"HTTP/1.1 200 "), reply
                    assert len(reply["rows"]) == 1, reply
                except (OSError, asyncio.IncompleteReadError, AssertionError) as error:
                    self.lost.append(repr(error))
                    return
                self.seconds.append(time.perf_counter() - started)
                is_open = b"connection: close" not in head.lower()
            writer.close()

    async def run(self, clients, seconds, meanwhile=None):
        ends_at = time.perf_counter() + seconds
        tasks = [asyncio.create_task(self.client(ends_at)) for _ in range(clients)]
        if meanwhile:
            await asyncio.sleep(seconds / 2)
            meanwhile()
        await asyncio.gather(*tasks)


FIGURES = ("simllm_batch_pairs_sum", "simllm_batch_pairs_count", "process_cpu_seconds_total")


def figures(port):
    """Return the pairs and the batches that a server has scored, and its seconds of processor time."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return [float(re.search(rf"^{name} (\S+)", text, re.M)[1]) for name in FIGURES]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def start(model):
    """Start a server; return its process and its port when it is ready."""
    options = ["--model", model] if model else []
    command = [sys.executable, "-m", "simllm", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
    assert "ready" in process.stderr.readline()
    return process, port


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a model folder; default: the included one")
    parser.add_argument("--source", type=Path, help="JSON lines of pairs; default: docstrings of Python")
    parser.add_argument("--fields", nargs=2, default=["candidate", "reference"], metavar="NAME")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--seconds", type=float, default=20, help="with each number of clients")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    candidates, references = pairs(options.source, 20_000, options.fields)
    texts = list(zip(candidates, references, strict=True))
    bodies = [json.dumps({"pairs": [{"candidate": a, "reference": b}]}).encode() for a, b in texts]
    metric, alone = SimLLM(options.model), []

    def score_directly():
        started = time.process_time()
        metric.score(candidates[:500], references[:500])
        alone.append(500 / (time.process_time() - started))

    metric.score(candidates[:64], references[:64])
    score_directly()
    process, port = start(options.model)
    found, first = {}, 0
    for clients in options.clients:
        load, before = Load(port, bodies[first:]), figures(port)
        started = time.perf_counter()
        asyncio.run(load.run(clients, options.seconds))
        seconds = time.perf_counter() - started
        assert not load.lost, load.lost[:3]
        first += len(load.seconds)
        assert first < len(bodies), "more pairs are needed"
        scored, count, used = (b - a for a, b in zip(before, figures(port), strict=True))
        found[str(clients)] = {
            "pairs_per_second": round(len(load.seconds) / seconds, 1),
            "p50_ms": round(1000 * statistics.median(load.seconds), 1),
            "p99_ms": round(1000 * percentile(load.seconds, 0.99), 1),
            "pairs_in_a_batch": round(scored / count, 1),
            "pairs_per_processor_second": round(scored / used, 1),
            "requests": len(load.seconds),
        }
        print(f"{clients:>4} clients: {found[str(clients)]}", flush=True)
    load = Load(port, bodies)
    asyncio.run(load.run(max(options.clients), 10, lambda: process.send_signal(signal.SIGTERM)))
    status = process.wait(120)
    ended = {"answered": len(load.seconds), "refused": load.refused, "lost": len(load.lost), "status": status}
    print(f"SIGTERM: {ended}")
    score_directly()
    direct = round(max(alone), 1)
    print(f"one call of the class: {direct} pairs a second of processor time; load {os.getloadavg()[1]:.1f}")
    if options.json:
        machine.write(options.json, clients=found, sigterm=ended, class_pairs_per_processor_second=direct,
                      mean_words=round(statistics.mean(len(t.split()) for t in candidates + references), 1),
                      load_average=round(os.getloadavg()[1], 1), signature=metric.signature)  # fmt: skip


if __name__ == "__main__":
    main()
