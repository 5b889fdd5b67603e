"""The playground, a web page that scores texts: its export to files, and its server."""

import hashlib
import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from simllm.analysis.playground import write_playground
from simllm.errors import InputError
from simllm.io.loopback_server import serving
from simllm.metric import SimLLM
from tests.command import run


def test_the_runtime_of_the_written_page_is_the_recorded_release(head_folder, tmp_path):
    write_playground(SimLLM(head_folder, long="whole"), tmp_path / "site")
    vendor = tmp_path / "site" / "vendor"
    for line in (vendor / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest, name
    assert sorted(file.suffix for file in vendor.iterdir()) == ["", "", ".mjs", ".wasm"]


@pytest.mark.slow
def test_export_writes_a_folder_that_it_may_replace(head_folder, tmp_path):
    folder = tmp_path / "site"
    for options in ((), ("--int8",)):
        done = run("export", "--web", folder, "--model", head_folder, *options)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    settings = json.loads((folder / "model" / "settings.json").read_text())
    for name, size in settings["files"].items():
        assert (folder / name).stat().st_size == size < 16_000_000
    assert settings["signature"] == SimLLM(head_folder, long="whole").signature
    assert (folder / "model" / "tokenizer.json").read_bytes() == (head_folder / "tokenizer.json").read_bytes()


def test_export_refuses_a_folder_of_the_user(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    done = run("export", "--web", tmp_path)
    assert done.returncode == 2
    assert "holds files that simllm did not write" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export",), "expected either -o FILE, to write the ONNX model to, or --web FOLDER"),
        (("export", "-o", "a", "--web", "b"), "expected either -o FILE"),
        (("export", "--code", "--web", "b"), "--code goes with -o FILE"),
        (("export", "-o", "a", "--int8"), "--int8 goes with --web"),
        (("playground", "--port", "70000"), "port 70000: expected a number from 0 to 65535"),
    ],
)
def test_wrong_options_get_one_line(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"simllm: error: {message}")
    assert done.stderr.count("\n") == 1


def test_a_model_with_another_pooling_is_refused(model_folder, tmp_path):
    with pytest.raises(InputError, match="mean pooling and cosine"):
        write_playground(SimLLM(model_folder, pooling="cls"), tmp_path / "site")
    with pytest.raises(InputError, match="compares texts as a whole"):
        write_playground(SimLLM(model_folder), tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


def test_a_used_port_is_one_line():
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        done = run("playground", "--port", port)
    assert done.returncode == 2
    assert (
        done.stderr == f"simllm: error: port {port}: cannot be used (Address already in use); name another\n"
    )


@pytest.fixture
def address(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "site"
    (folder / "inner").mkdir(parents=True)
    for name in ("index.html", "a.mjs", "a.wasm", "a.json", "a.onnx"):
        (folder / name).write_text(name)
    with serving(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.json", "application/json"),
        ("a.onnx", "application/octet-stream"),
    ],
)
def test_the_server_names_the_types_of_files(address, name, kind):
    with urllib.request.urlopen(f"{address}/{name}") as reply:
        assert reply.headers["Content-Type"] == kind
        assert reply.read().decode() == (name or "index.html")


@pytest.mark.parametrize("path", ["../secret.txt", "%2e%2e/secret.txt", "inner/../../secret.txt", "inner/"])
def test_the_server_shows_nothing_outside_of_its_folder_and_no_lists(address, path):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address}/{path}")


@pytest.mark.slow
def test_the_command_serves_the_page_until_it_is_interrupted(head_folder):
    command = [sys.executable, "-m", "simllm", "playground", "--port", "0", "--model", head_folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address) as reply:
            assert b"<h1>simllm playground</h1>" in reply.read()
        process.terminate()
        rest = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest == ("", "simllm: Ctrl+C ends the playground\n")
