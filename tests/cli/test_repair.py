"""The commands `simllm repair run` and `simllm repair report`."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests import command
from tests.chat_server import chat_server
from tests.execution.conftest import sandbox  # noqa: F401 (a fixture)
from tests.repair.programs import ITEM, RIGHT, fenced


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-123456")
    with chat_server() as server:
        server.reply = lambda prompt: fenced(RIGHT)
        yield server


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "items.jsonl"
    file.write_text(json.dumps(ITEM) + "\n")
    return file


@pytest.mark.slow
def test_run_replay_and_report(server, file, tmp_path, sandbox):  # noqa: F811
    words = (
        "--base-url",
        f"{server.url}/v1",
        "--model",
        "M",
        "--strategy",
        "single",
        "--with",
        "guidance,tests",
    )
    done = command.run("repair", "run", file, *words, "--attempts", "2", "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "items\tn\tAVG\tTOP-1\tTOP-2\tRPSR\trequests\tcost", "all\t1\t1\t1\t1\t1\t2\tn/a"
    ]  # fmt: skip
    done = command.run(
        "repair", "run", file, "--replay", tmp_path / "run", "-o", tmp_path / "again", "-f", "json"
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["run"], shown["rows"][0]["cost"]) == ("M, single with guidance, tests", None)
    done = command.run("repair", "report", tmp_path / "run", "-o", tmp_path / "report")
    assert done.stdout == f"{tmp_path}/report/report.html\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected --model NAME: the name of the model at the endpoint"),
        (("--model", "M"), "expected --base-url URL, or OPENAI_BASE_URL: where should the requests go?"),
        (("--model", "M", "--max-cost", "1"), "--max-cost needs --prices FILE"),
        (("--model", "M", "--with", "hints"), "--with hints: expected any of guidance, solution, tests"),
        (("--model", "M", "--bar", "1"), "--judge METRIC and --bar X go together"),
        (
            ("--model", "M", "--judge", "jaccard", "--bar", "1", "--show-output"),
            "--show-output, --compare and --unsafe are for programs, not for summaries",
        ),
        (("--replay", "x", "--rate", "1"), "--rate goes with an endpoint; --replay uses recorded replies"),
    ],
)
def test_errors_name_the_flags(server, file, tmp_path, words, message):
    done = command.run("repair", "run", file, *words, "-o", tmp_path / "run")
    assert (done.returncode, done.stderr) == (2, f"simllm: error: {message}\n")


def test_a_group_may_be_named_all(server, file, tmp_path, sandbox):  # noqa: F811
    items = [ITEM | {"id": name, "description": name, "group": name} for name in ("all", "other")]
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    words = ("--base-url", f"{server.url}/v1", "--model", "M", "--attempts", "1", "-o", tmp_path / "run")
    done = command.run("repair", "run", file, *words)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t")[:2] for line in done.stdout.splitlines()[1:]]
    assert rows == [["all", "2"], ["all", "1"], ["other", "1"]]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ fix }}", "{folder}: request.j2: 'fix' is undefined; known: item, "),
        (
            "{% if verdict == 'RE' %}{{ fix }}{% endif %}",
            "{folder}: request.j2: 'fix' is undefined; known: item, ",
        ),
        ("a\n{% if %}", "{folder}: request.j2, line 2: "),
        ("{% include 'request.j2' %}", "request.j2: maximum recursion depth exceeded"),
        ("", "item next: the first request has no message"),
        (
            "{% if failed %}{{ failed[0].actual.strip() }}{% endif %}",
            "request.j2: 'None' has no attribute 'strip'",
        ),
        (
            "{% if failed %}{{ failed[0].hint }}{% endif %}",
            "request.j2: 'dict object' has no attribute 'hint'",
        ),
    ],
)
def test_wrong_template_is_found_before_the_first_request(server, file, tmp_path, request, template, message):
    request.getfixturevalue("sandbox")
    own = tmp_path / "own"
    own.mkdir()
    (own / "request.j2").write_text(template)
    words = ("--base-url", f"{server.url}/v1", "--model", "M", "--strategy", "single", "--with", "tests")
    done = command.run("repair", "run", file, *words, "--prompts", own, "-o", tmp_path / "run")
    assert done.returncode == 2
    assert done.stderr.startswith("simllm: error: " + message.format(folder=own))
    assert server.requests == []
    assert not (tmp_path / "run").exists()


def test_included_template_sees_the_variables_of_a_loop(server, file, tmp_path, sandbox):  # noqa: F811
    (tmp_path / "own").mkdir()
    loop = '{% for test in failed or [] %}{% include "one_test.j2" %}{% endfor %}{{ hint | default("none") }}'
    (tmp_path / "own" / "request.j2").write_text(loop)
    (tmp_path / "own" / "one_test.j2").write_text("In: {{ test.input }}")
    words = (
        "--base-url",
        f"{server.url}/v1",
        "--model",
        "M",
        "--prompts",
        tmp_path / "own",
        "--attempts",
        "1",
    )
    done = command.run("repair", "run", file, *words, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr


def test_address_with_a_secret_is_not_shown(server, file, tmp_path):
    words = ("--base-url", "http://user:secret@h:99999/v1", "--model", "M", "--unsafe")
    done = command.run("repair", "run", file, *words, "-o", tmp_path / "run")
    assert done.returncode == 2
    assert "the address of the endpoint has a secret in it" in done.stderr
    assert "user" not in done.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "http://127.0.0.1:99999/v1"])
def test_run_without_a_server_makes_no_run(server, file, tmp_path, address):
    (tmp_path / "run").mkdir()
    done = command.run(
        "repair", "run", file, "--base-url", address, "--model", "M", "--unsafe", "-o", tmp_path / "run"
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"simllm: error: {address}: ")
    assert list((tmp_path / "run").iterdir()) == []


def test_status_of_an_incomplete_run(server, file, tmp_path, sandbox):  # noqa: F811
    server.reply = lambda prompt: (500, {}, b"no memory")
    words = ("--base-url", f"{server.url}/v1", "--model", "M", "--retries", "0", "--attempts", "2")
    done = command.run("repair", "run", file, *words, "-o", tmp_path / "run")
    assert done.returncode == 1
    warning, message = done.stderr.splitlines()
    assert warning == "simllm: warning: no attempt is finished, so that there are no figures"
    assert message.startswith("simllm: 2 attempts are open (item next, attempt 1: ")
    assert message.endswith("the same command continues")


@pytest.mark.slow
@pytest.mark.parametrize("waits_for", ["model", "program"])
def test_ctrl_c_does_not_wait(server, file, tmp_path, sandbox, waits_for):  # noqa: F811
    item = json.loads(file.read_text()) | {"time": 20}
    file.write_text(json.dumps(item) + "\n")
    server.reply = lambda prompt: fenced("while True: pass\n")
    server.delay = 10 if waits_for == "model" else 0
    words = ("--base-url", f"{server.url}/v1", "--model", "M", "--attempts", "2", "-o", tmp_path / "run")
    run = [sys.executable, "-m", "simllm", "repair", "run", file, *words]
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    while not server.requests:
        time.sleep(0.01)
        assert time.monotonic() - begun < 20
    time.sleep(0.3)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=8)
    assert time.monotonic() - begun < 4
    assert (process.returncode, errors) == (130, "simllm: interrupted (the same command continues)\n")


def test_messages_hold_no_control_characters(server, file, tmp_path, sandbox):  # noqa: F811
    item = json.loads(file.read_text()) | {"id": "a\n\x1b[31mb"}
    file.write_text(json.dumps(item) + "\n")
    server.reply = lambda prompt: (
        500,
        {},
        json.dumps({"error": {"message": "no\x1b]0;x\x07\nmemory"}}).encode(),
    )
    words = ("--base-url", f"{server.url}/v1", "--model", "M", "--retries", "0", "--attempts", "1")
    done = command.run("repair", "run", file, *words, "-o", tmp_path / "run")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2
    assert done.stderr.replace("\n", "").isprintable()


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusals(server, file, tmp_path, status, sandbox):  # noqa: F811
    server.reply = lambda prompt: (status, {}, b'{"error": {"message": "sk-canary-123456 is wrong"}}')
    words = ("--base-url", f"{server.url}/v1", "--model", "M")
    done = command.run("repair", "run", file, *words, "-o", tmp_path / "run")
    assert done.returncode == 2
    assert done.stderr.startswith("simllm: error: the endpoint refuses: ")
    assert "canary" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected -o DIR, the folder of the run"),
        (("-o", "run"), "expected --model NAME: the name of the model at the endpoint"),
        (
            ("-o", "run", "--model", "M"),
            "expected --base-url URL, or OPENAI_BASE_URL: where should the requests go?",
        ),
        (("-o", "run", "--replay", "none"), "none: has no settings.json; expected the folder of a run"),
        (
            ("-o", "run", "--replay", "none", "--retries", "5"),
            "--retries goes with an endpoint; --replay uses recorded replies",
        ),
    ],
)
def test_wrong_options(file, tmp_path, monkeypatch, words, message):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    done = command.run("repair", "run", file, *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"simllm: error: {message}\n")


def test_report_of_nothing(tmp_path):
    done = command.run("repair", "report", tmp_path, "-o", tmp_path / "report")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert command.run("repair", "report", tmp_path).returncode == 2
