"""A study whose tool is a language model behind an endpoint."""

import json
import re

import pytest

from simllm.cli.main import main
from tests.chat_server import chat_server

SOURCES = [f"def total{n}(n):\n    if n == {n}:\n        return 1\n    return n + 1\n" for n in range(6)]
TEMPLATE = "Fix {{ language }} code:\n{{ code }}\n{{ test }}"


@pytest.fixture
def study(tmp_path):
    items = [
        {"id": f"i{n}", "language": "python", "source": source, "test": f"assert total{n}(1)", "label": "x"}
        for n, source in enumerate(SOURCES)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    (tmp_path / "fix.j2").write_text(TEMPLATE)
    files = ["--items", str(tmp_path / "items.jsonl"), "--variants", str(tmp_path / "v.jsonl")]
    assert main(["perturb", "code", "--jsonl", files[1], "-o", files[3]]) == 0
    return [*files, "--template", str(tmp_path / "fix.j2"), "--out", str(tmp_path / "out")]


def repaired(prompt):
    """Repair originals only, as a model does that knows them by heart."""
    code = prompt.partition("\n")[2].rpartition("\n")[0]
    name = re.search(r"def (\w+)", code)[1]
    # The test in the prompt calls the function by the name that the code has.
    assert f"assert {name}(1)" in prompt
    fixed = code.replace("n + 1", "n")
    return f"Here you are.\n```python\n{fixed}\n```"


def test_a_model_is_asked_recorded_resumed_and_replayed(study, tmp_path, capsys):
    judge = ["--judge", "grep -qv 'n + 1'", "--restore", "--code", "--draws", "2"]
    with chat_server() as server:
        server.reply = repaired
        given = [
            *study,
            "--base-url",
            server.url,
            "--model",
            "m",
            "--seed",
            "5",
            "--temperature",
            "1",
            *judge,
        ]
        assert main(["evaluate", "metamorphic", *given]) == 0
        assert len(server.requests) == 2 * 2 * 6
        bodies = [body for _, _, body in server.requests]
        assert {body["seed"] for body in bodies} == {5, 6}
        assert {body["model"] for body in bodies} == {"m"}
        first = (tmp_path / "out" / "metamorphic.json").read_text()
        # Nothing that is on record is asked for again.
        assert main(["evaluate", "metamorphic", *given]) == 0
        assert len(server.requests) == 24
        assert (tmp_path / "out" / "metamorphic.json").read_text() == first
    record = tmp_path / "out" / "answers.jsonl"
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    assert {row["sample"] for row in rows} == {1, 2}
    assert all("messages" in row["request"] and row["reply"] for row in rows)
    again = [*study[:-1], str(tmp_path / "again"), "--replay", str(record), *judge]
    assert main(["evaluate", "metamorphic", *again]) == 0
    figures = [
        json.loads((tmp_path / out / "metamorphic.json").read_text())["tools"] for out in ("out", "again")
    ]
    assert figures[0] == figures[1]
    assert not (tmp_path / "again" / "answers.jsonl").exists()
    capsys.readouterr()
    record.write_text("".join(json.dumps(row) + "\n" for row in rows[1:]))
    assert main(["evaluate", "metamorphic", *again]) == 2
    # Replies are recorded in the order in which they arrive.
    missing = f"answers.jsonl: has no reply to this request (sample {rows[0]['sample']})"
    assert missing in capsys.readouterr().err


def test_replies_of_a_base_model_are_replayed(study, tmp_path):
    with chat_server() as server:
        server.reply = lambda prompt: "x"
        given = ["--base-url", server.url, "--model", "m", "--completions"]
        assert main(["evaluate", "metamorphic", *study, *given]) == 0
    record = tmp_path / "out" / "answers.jsonl"
    assert "prompt" in json.loads(record.read_text().splitlines()[0])["request"]
    again = [*study[:-1], str(tmp_path / "again"), "--replay", str(record)]
    assert main(["evaluate", "metamorphic", *again]) == 0


def test_a_lost_endpoint_gives_status_1_and_the_same_command_continues(study, tmp_path, capsys):
    asked = []

    def reply(prompt):
        asked.append(prompt)
        return None if len(asked) % 3 == 0 and len(asked) < 10 else "x"

    with chat_server() as server:
        server.reply = reply
        given = [
            "evaluate",
            "metamorphic",
            *study,
            "--base-url",
            server.url,
            "--retries",
            "0",
            "--parallel",
            "1",
        ]
        assert main(given) == 1
        assert "the same command continues" in capsys.readouterr().err
        known = len((tmp_path / "out" / "answers.jsonl").read_text().splitlines())
        assert main(given) == 0
        assert len(asked) == 12 + 3
        assert known == 12
    found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"][""]
    assert found["mean"]["original"] == found["mean"]["transformed"] == 1


def test_replies_that_fail_for_good_are_crashes(study, tmp_path, capsys):
    body = {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}
    with chat_server() as server:
        server.reply = lambda prompt: (200, {}, json.dumps(body).encode()) if "total0" in prompt else "x"
        assert main(["evaluate", "metamorphic", *study, "--base-url", server.url]) == 0
    assert "1 run of the model gave no answer: 1 with content filter" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ cod }}", "cod"),
        ("{{ label }}", "label"),
        ("{{ reference }}", "reference"),
        ("{{ code", "fix.j2"),
        ("  ", "the template gives an empty prompt"),
    ],
)
def test_wrong_templates_are_found_before_the_first_request(study, tmp_path, capsys, template, message):
    (tmp_path / "fix.j2").write_text(template)
    with chat_server() as server:
        assert main(["evaluate", "metamorphic", *study, "--base-url", server.url]) == 2
        assert not server.requests
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--command", "cat"], "expected --recorded FILE, or"),
        (["--replay", "r", "--temperature", "1"], "--temperature goes with an endpoint"),
        (["--replay", "r", "--model", "m"], "--model goes with an endpoint"),
        (["--timeout", "3"], "--timeout goes with --command or --judge"),
        (["--temperature", "-1"], "--temperature -1.0: expected a number from 0"),
    ],
)
def test_options_of_models_are_checked(study, capsys, words, message):
    assert main(["evaluate", "metamorphic", *study, *words]) == 2
    assert message in capsys.readouterr().err


def test_options_of_models_go_with_a_template(study, capsys):
    given = [*study[:4], "--command", "cat", *study[6:], "--base-url", "http://127.0.0.1:1"]
    assert main(["evaluate", "metamorphic", *given]) == 2
    assert "--base-url goes with --template" in capsys.readouterr().err
