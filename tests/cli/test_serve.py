"""`simllm serve` as a process: its start, its end by a signal under load, and its options."""

import contextlib
import http.client
import http.server
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from tests.command import run
from tests.conftest import ROOT

pytest.importorskip("fastapi", reason="the extra serve is not installed")

PAIR = {"candidate": "adds two lists", "reference": "combines 2 arrays"}


@contextlib.contextmanager
def serving(*options, **environment):
    """Start the command, and yield the process and its port when the server is ready."""
    command = [sys.executable, "-m", "simllm", "serve", "--port", "0", *map(str, options)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    )
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), process.communicate()
        port = int(address.rstrip("/").rpartition(":")[2])
        wait_for(lambda: request(port, "GET", "/health")[0] == 200, process)
        yield process, port
    finally:
        process.kill()
        process.communicate()


def wait_for(condition, process):
    for _ in range(3000):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError("the condition does not come true")


def request(port, method, path, body=None, headers=None, host="127.0.0.1"):
    """Send a request on a new connection; return status, JSON and headers of the answer."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json", **(headers or {})})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text.startswith(b"{") else text, answer.headers


class Client(threading.Thread):
    """A client that sends requests one after another, until the server takes no more connections.

    Attributes:
        answered: Number of answers with the expected scores.
        lost: What went wrong with requests that the server had taken.
    """

    def __init__(self, port, keeps_connection, expected):
        super().__init__()
        self.port, self.keeps_connection, self.expected = port, keeps_connection, expected
        self.answered, self.lost = 0, []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = json.dumps({"pairs": [PAIR] * 3})
        while True:
            if not self.keeps_connection:
                connection.close()
            if connection.sock is None:
                try:
                    connection.connect()
                except OSError:
                    return  # refused: the server did not take this request
            try:
                connection.request("POST", "/score", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                reply = json.loads(answer.read())
            except Exception as error:
                self.lost.append(repr(error))
                return
            if answer.status != 200 or abs(reply["mean"] - self.expected) > 1e-5 or len(reply["rows"]) != 3:
                self.lost.append((answer.status, reply))
                return
            self.answered += 1


@pytest.mark.slow
@pytest.mark.parametrize("keeps_connection", [True, False])
def test_sigterm_under_load_loses_no_request(head_folder, keeps_connection):
    with serving("--model", head_folder) as (process, port):
        expected = request(port, "POST", "/score", {"pairs": [PAIR] * 3})[1]["mean"]
        clients = [Client(port, keeps_connection, expected) for _ in range(32)]
        for client in clients:
            client.start()
        wait_for(lambda: min(client.answered for client in clients) >= 5, process)
        process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(60)
        assert [client.lost for client in clients] == [[]] * 32
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
    ready, stopping = errors.splitlines()
    assert ready.startswith("simllm: ready, model:")
    assert stopping == "simllm: stopping when all requests are answered; a second signal ends at once"


@pytest.mark.slow
def test_a_long_request_is_answered_after_sigterm_and_a_second_signal_ends_at_once(head_folder):
    words = [f"word{i}" for i in range(4000)]
    pairs = [{"candidate": " ".join(words[i : i + 30]), "reference": words[i]} for i in range(3000)]
    options = ("--model", head_folder, "--max-pairs", 5000)
    for signals in ([signal.SIGTERM], [signal.SIGTERM, signal.SIGINT]):
        with serving(*options) as (process, port), socket.create_connection(("127.0.0.1", port)) as client:
            body = json.dumps({"pairs": pairs}).encode()
            head = f"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            # The server answers others while it scores.
            assert request(port, "GET", "/health")[0] == 200
            assert not select.select([client], [], [], 0)[0]
            process.send_signal(signals[0])
            assert "stopping" in [process.stderr.readline(), process.stderr.readline()][1]
            if len(signals) == 1:
                client.settimeout(120)
                answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
                assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
                assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["rows"]) == 3000
                assert process.wait(60) == 0
                with pytest.raises(ConnectionRefusedError):
                    request(port, "GET", "/health")
            else:
                process.send_signal(signals[1])
                assert process.wait(60) == -signals[1]


@pytest.mark.slow
def test_another_address_with_a_token_that_is_never_printed(head_folder, tmp_path, monkeypatch):
    token = "a-token-of-the-tests-0123"
    (tmp_path / "token").write_text(token + "\n")
    options = ("--model", head_folder, "--host", "0.0.0.0", "--token-file", tmp_path / "token")
    with serving(*options) as (process, port):
        texts = ["adds two lists"], ["combines 2 arrays"]
        body = {"completions": texts[0], "references": texts[1]}
        status, reply, _ = request(port, "POST", "/reward", body)
        assert (status, list(reply)) == (401, ["error"])
        status, reply, _ = request(port, "POST", "/reward", body, {"Authorization": f"Bearer {token}"})
        assert (status, len(reply["rewards"])) == (200, 1)
        monkeypatch.setenv("SIMLLM_SERVER", f"http://127.0.0.1:{port}/")
        monkeypatch.setenv("SIMLLM_TOKEN", token)
        example = runpy.run_path(str(ROOT / "docs/examples/http_reward.py"))
        assert example["trl_reward"](*texts, prompts=["Summarize"]) == reply["rewards"]
        assert example["compute_score"]("java", texts[0][0], texts[1][0]) == reply["rewards"][0]
        with pytest.raises(RuntimeError, match="1 completions, 2 references: expected as many of each"):
            example["rewards"](["a"], ["a", "b"])
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        assert token not in out + errors


def test_the_example_waits_for_a_server_that_is_restarted(monkeypatch):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            content = json.dumps({"rewards": [0.5], "path": self.path}).encode()
            self.send_response(200 if self.path == "/reward" else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False) as server:
        server.server_bind()  # refuses connections, as it does not listen yet
        thread = threading.Thread(target=server.serve_forever)

        def listen(_):
            server.server_activate()
            thread.start()

        monkeypatch.setenv("SIMLLM_SERVER", f"http://127.0.0.1:{server.server_port}")
        example = runpy.run_path(str(ROOT / "docs/examples/http_reward.py"))
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", listen)
            assert example["rewards"](["a"], ["b"]) == [0.5]
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_it_ends_in_time_while_the_model_is_loaded():
    code = (
        "import sys, threading, simllm.metric as metric\n"
        "metric.SimLLM = lambda *_, **__: threading.Event().wait()\n"
        "from simllm.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--timeout", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        assert request(port, "GET", "/health")[1]["status"] == "loading"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_odd_connections_do_no_harm(head_folder):
    with serving("--model", head_folder, "--timeout", 2) as (process, port):
        odd = [
            b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n" + b"x" * 100_000, b"\r\n" * 50,
            b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9" + b"9" * 30 + b"\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        ]  # fmt: skip
        for content in odd:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(content)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            client.sendall(b"Content-Length: 10\r\n\r\n{")
            assert b" 408 " in client.recv(1 << 16)
        assert request(port, "POST", "/score", {"pairs": [PAIR]})[0] == 200
        # A connection that sent half of its headers does not hold up the end.
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"POST /score HTTP/1.1\r\n")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in errors


@pytest.mark.slow
def test_the_engine_without_torch_gives_the_same_scores():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from importlib import util; found = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'torch' else found(name, *rest)\n"
        "from simllm.io import packages; packages.find_spec = util.find_spec\n"
        "from simllm.cli.main import main; sys.exit(main())"
    )
    with serving() as (_, port):
        expected = request(port, "POST", "/score", {"pairs": [PAIR]})[1]
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        port = int(address.rstrip("/").rpartition(":")[2])
        wait_for(lambda: request(port, "GET", "/health")[0] == 200, process)
        found = request(port, "POST", "/score", {"pairs": [PAIR]})[1]
        with urllib.request.urlopen(f"{address}docs") as page:
            assert b"POST /score" in page.read()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert "engine:onnxruntime" in found["signature"]
    for name in ("score", "same"):
        assert found["rows"][0][name] == pytest.approx(expected["rows"][0][name], abs=1e-5)


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        (["--host", "0.0.0.0"], {}, "host '0.0.0.0': other machines could use the server; it needs a token,"),
        (
            ["--host", "::"],
            {},
            "host '::': other machines could use the server; it needs a token, from --tok",
        ),
        (["--host", "no.such.machine.invalid"], {}, "host 'no.such.machine.invalid': cannot be found ("),
        (["--host", "a" * 80], {}, "cannot be found (no name of a machine)"),
        (["--port", "65536"], {}, "port 65536: expected a number from 0 to 65535"),
        (["--port", "TAKEN"], {}, "cannot be used (Address already in use); name another"),
        (["--port", "x"], {}, "argument --port: invalid int value: 'x'"),
        (["--token-file", "none"], {}, "none: cannot be read (No such file or directory)"),
        (["--token-file", "short"], {}, "short: expected a token of 16 or more ASCII characters without sp"),
        (["--token-file", "two"], {}, "two: expected a token of 16 or more ASCII characters without spaces"),
        ([], {"SIMLLM_TOKEN": ""}, "the environment variable SIMLLM_TOKEN: expected a token of 16 or more"),
        (["--max-pairs", "0"], {}, "--max-pairs 0: expected a number above 0"),
        (["--timeout", "inf"], {}, "--timeout inf: expected a number above 0"),
        (
            ["--max-waiting", "5"],
            {},
            "--max-waiting must be at least --max-pairs, which one request may have",
        ),
    ],
)
def test_wrong_options_give_one_line_and_exit_status_2(tmp_path, options, environment, message):
    (tmp_path / "short").write_text("secret\n")
    (tmp_path / "two").write_text("two words of a token\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [port if word == "TAKEN" else word for word in options]
        done = run("serve", "--port", "0", *words, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("simllm: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


@pytest.mark.slow
def test_a_missing_model_ends_the_server():
    command = [sys.executable, "-m", "simllm", "serve", "--port", "0", "--model", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (2, "simllm: error: nowhere: no such model folder\n")
