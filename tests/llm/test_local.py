"""`--local FILE.gguf`: a real llama.cpp server, which ends with the command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from simllm.errors import InputError
from simllm.llm import Model, generate, local, local_server
from tests.command import run
from tests.llm.tiny_gguf import write_tiny_gguf

ITEMS = [{"id": number, "gold": "a" if number % 2 else "b"} for number in range(6)]


@pytest.fixture
def files(tmp_path):
    """Write items, a template and a tiny model; return the words of the command."""
    (tmp_path / "i.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    (tmp_path / "t.j2").write_text("Item {{ id }}:")
    model = write_tiny_gguf(tmp_path / "tiny.gguf")
    words = ["generate", tmp_path / "i.jsonl", "--template", tmp_path / "t.j2", "--local", model]
    return [*words, "--seed", 1, "--max-tokens", 6, "-o", tmp_path / "o.jsonl"]


def servers_of(folder):
    """Return the processes of the servers whose model is in a folder; they hold the model open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_server = local_server.__file__.encode() in (process / "cmdline").read_bytes()
            if is_server and str(folder) in (process / "maps").read_text():
                found.append(int(process.name))
    return found


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("api", [[], ["--completions"]])
def test_a_real_server_answers_and_a_replay_is_the_same(files, tmp_path, api):
    done = run(*files, *api, "--samples", 2)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [(row["id"], row["sample"]) for row in rows] == [(item["id"], n) for item in ITEMS for n in (1, 2)]
    assert {row["request"]["model"] for row in rows} == {"tiny"}
    assert all(row["completion_tokens"] <= 6 and row["reply"] for row in rows)
    assert len({row["reply"] for row in rows}) > len(ITEMS)  # samples differ
    replay = [*files[:4], "--replay", tmp_path / "o.jsonl", "-o", tmp_path / "again.jsonl"]
    assert run(*replay).returncode == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "o.jsonl").read_bytes()
    assert not servers_of(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("api", [[], ["--completions"]])
def test_real_log_probabilities(files, tmp_path, api):
    """Labels of one byte, one of which nearly every reply has."""
    labels = ",".join("abcdefghij")
    done = run(*files, *api, "--labels", labels, "--logprobs", "--max-tokens", 40)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    # The model writes random bytes; at broken characters, the server leaves tokens out.
    known = [row for row in rows if row["probabilities"]]
    assert known
    for row in known:
        assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
def test_the_server_wants_its_key_and_is_on_the_loopback_only(tmp_path, monkeypatch):
    model = write_tiny_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # the loopback needs no proxy
    with local.served(model, Model(max_tokens=3)) as served:
        assert served.base_url.startswith("http://127.0.0.1:")
        assert len(generate([{"id": 1}], "x", served)) == 1
        assert "key" not in repr(served).replace("key_variable", "").replace("API_KEY", "")
        request = urllib.request.Request(
            f"{served.base_url}/completions", b'{"prompt": "x"}', {"Content-Type": "application/json"}
        )
        monkeypatch.delenv("http_proxy")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=20)
        assert servers_of(tmp_path)
    assert not servers_of(tmp_path)
    assert "SIMLLM_LOCAL" not in str(os.environ)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_with_the_command_however_it_ends(files, tmp_path, number):
    command = [sys.executable, "-m", "simllm", *map(str, files), "--samples", "2000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    wait_for((tmp_path / "o.jsonl.partial").exists)
    assert servers_of(tmp_path)
    process.send_signal(number)
    process.communicate()
    wait_for(lambda: not servers_of(tmp_path))


def test_files_that_are_no_models(files, tmp_path):
    (tmp_path / "tiny.gguf").write_text("text")
    done = run(*files)
    assert (done.returncode, done.stderr) == (
        2,
        f"simllm: error: {tmp_path / 'tiny.gguf'}: is no GGUF file\n",
    )
    done = run(*files[:5], tmp_path / "none.gguf", *files[6:])
    assert (done.returncode, "none.gguf: cannot be read" in done.stderr) == (2, True)
    done = run(*files, "--base-url", "http://x")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_a_damaged_model_is_one_line(tmp_path):
    model = write_tiny_gguf(tmp_path / "tiny.gguf")
    model.write_bytes(model.read_bytes()[:2000])
    with (
        pytest.raises(InputError, match=r"tiny.gguf: llama.cpp cannot load it \(.+\)$"),
        local.served(model, Model()),
    ):
        pass


@pytest.mark.slow
@pytest.mark.skipif("SIMLLM_GGUF" not in os.environ, reason="SIMLLM_GGUF names no model")
def test_a_real_model(tmp_path):
    code = {"pass": "assert 1 + 1 == 2", "fail": "assert 1 + 1 == 3"}
    items = [{"id": label, "code": text} for label, text in code.items()]
    template = "Does this pass or fail?\n{{ code }}\nAnswer with one word: pass or fail."
    with local.served(
        Path(os.environ["SIMLLM_GGUF"]), Model(temperature=0, max_tokens=20, parallel=2)
    ) as model:
        rows = generate(items, template, model, labels=["pass", "fail"], logprobs=True)
    assert {row["predicted"] for row in rows} <= {"pass", "fail"}
    assert rows[0]["probabilities"]["pass"] > rows[1]["probabilities"]["pass"]
