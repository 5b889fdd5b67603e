"""Benchmark of the engine for language models: its rate at a fast endpoint, and the time of a replay.

python -m tests.benchmarks.llm
python -m tests.benchmarks.llm --json tests/benchmarks/results/llm-cpu.json

The endpoint runs in a process of its own. Its own rate is what a bare client measures that sends the same
bytes on as many connections and looks at nothing.
"""

import argparse
import asyncio
import json
import multiprocessing
import socket
import tempfile
import time
from pathlib import Path

from simllm.llm import Model, generate
from simllm.llm.records import ReplyRecord
from simllm.llm.session import Question, Session
from tests.benchmarks import machine

PARALLEL = 64
TEMPLATE = "Repair this function:\n{{ code }}"
CODE = "def f(n):\n    # TODO: check the number\n" + "    n = n + 1\n" * 40
REPLY = json.dumps(
    {
        "choices": [{"message": {"content": f"```python\n{CODE}```"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 250},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY)


async def read_message(reader):
    """Read the head and the body of a request or response."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return await reader.readexactly(int(length.split(b":")[1]))


def serve(pipe, delay):
    """Run an endpoint that gives one reply to all requests, after a delay."""

    async def answer(reader, writer):
        try:
            while True:
                json.loads(await read_message(reader))
                if delay:
                    await asyncio.sleep(delay)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run():
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(run())


class Endpoint:
    """An endpoint in another process, during a `with` block."""

    def __init__(self, delay):
        self.delay = delay

    def __enter__(self):
        self.pipe, there = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(there, self.delay), daemon=True)
        self.process.start()
        return self.pipe.recv()

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def own_rate(port, requests):
    """Measure the requests a second of a bare client."""
    body = json.dumps(Model(model="M").request(TEMPLATE.replace("{{ code }}", CODE))).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    request = head % len(body) + body
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(PARALLEL)]
    begun = time.perf_counter()
    for connection in connections:
        connection.sendall(request)
    for number in range(requests):
        connection = connections[number % PARALLEL]
        left = len(ANSWER)
        while left:
            left -= len(connection.recv(left))
        if number + PARALLEL < requests:
            connection.sendall(request)
    return requests / (time.perf_counter() - begun)


def items(count):
    return [{"id": number, "code": f"# {number}\n{CODE}"} for number in range(count)]


def model_at(port):
    return Model(base_url=f"http://127.0.0.1:{port}/v1", model="M", parallel=PARALLEL)


def rates(folder, delay, requests):
    """Measure the endpoint's own rate, and the rate of the engine, which records each reply on the disk."""
    with Endpoint(delay) as port:
        own = own_rate(port, requests)
        questions = [Question(f"# {number}\n{CODE}") for number in range(requests)]
        record = ReplyRecord(Path(folder) / f"rate-{delay}.jsonl")
        with Session(model_at(port), record) as session:
            begun = time.perf_counter()
            assert sum(1 for _ in session.ask_all(questions)) == requests
            rate = requests / (time.perf_counter() - begun)
    return {"own rate": own, "rate": rate, "share": rate / own}


def replay_time(folder, requests):
    """Measure the time to replay recorded replies."""
    recorded = Path(folder) / "recorded.jsonl"
    with Endpoint(0) as port:
        generate(items(requests), TEMPLATE, model_at(port), output=recorded)
    begun = time.perf_counter()
    generate(items(requests), TEMPLATE, replay=recorded, output=Path(folder) / "again.jsonl")
    seconds = time.perf_counter() - begun
    assert (Path(folder) / "again.jsonl").read_bytes() == recorded.read_bytes()
    return {"replies": requests, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument("--requests", type=int, default=5000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "machine": machine.facts(),
            "answers at once": rates(folder, 0, given.requests),
            "answers after 50 ms": rates(folder, 0.05, given.requests),
            "replay": replay_time(folder, 3 * given.requests),
        }
    text = json.dumps(results, indent=1)
    print(text)
    if given.json:
        given.json.write_text(text + "\n")
