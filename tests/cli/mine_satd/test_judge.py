"""`simllm mine satd --judge`: a language model checks the items."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from simllm.code.satd_mining import mining
from tests.cli.mine_satd.repayments import CHANGES, FUNNEL, THEIRS, funnel, mine, read, theirs_of
from tests.command import run
from tests.conftest import ROOT
from tests.histories import git

pytestmark = pytest.mark.slow  # many processes; the quick lane runs the documented pages


ANSWERS = "items.jsonl.answers.jsonl"


def verdicts(done):
    """Return the judge's line of a finished run as a dictionary."""
    [line] = [line for line in done.stderr.splitlines() if line.startswith("simllm: judge: ")]
    pairs = (part.split() for part in line.removeprefix("simllm: judge: ").split(", "))
    return {verdict: int(count) for verdict, count in pairs}


def test_judge_keeps_only_changes_with_the_answer_yes(rules, tmp_path, server):
    server.reply = lambda prompt: "**Yes**, it does." if "not_too_long" in prompt else "No, yes."
    options = ("--judge", server.url, "--model", "judge-1")
    done = mine(tmp_path, *options, env={"OPENAI_API_KEY": "secret\n"})
    assert done.returncode == 0
    assert done.stderr == FUNNEL.replace(
        "simllm: train 0, validation 2",
        "         1  the model says that the change repays the debt\n"
        "simllm: judge: yes 1, no 1, unclear 0, failed 0\nsimllm: train 0, validation 1",
    )
    assert [item["function"] for item in read(tmp_path / "items.jsonl")] == ["not_too_long"]
    assert [body["model"] for _, _, body in server.requests] == ["judge-1"] * 2
    assert {headers["Authorization"] for _, headers, _ in server.requests} == {"Bearer secret"}
    assert {body["temperature"] for _, _, body in server.requests} == {0}
    prompts = "".join(body["messages"][0]["content"] for _, _, body in server.requests)
    assert all(code.rstrip() in prompts for code in (*CHANGES["kept.py"], "# TODO: return two"))
    answers = {row["function"]: (row["verdict"], row["reply"]) for row in read(tmp_path / ANSWERS)}
    assert answers == {"kept": ("no", "No, yes."), "not_too_long": ("yes", "**Yes**, it does.")}


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_addresses_of_the_judge(rules, tmp_path, server, end):
    assert mine(tmp_path, "--judge", server.url + end).returncode == 0
    assert {path for path, _, _ in server.requests} == {"/v1/chat/completions"}
    assert all("model" not in body for _, _, body in server.requests)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("no", "no"), ("", "unclear"), ("yesterday", "unclear"), ("Yes" * 2, "unclear"), ("I say yes", "yes"),
        ("<think>no?</think>\n\nyes", "yes"), ("Answer: yes", "yes"), ("Yes, as no error is left.", "yes"),
        ("1. The loop is gone.\n2. So is the bug.\n\nSo, yes", "yes"), ("<think>yes", "unclear"),
    ],
)  # fmt: skip
def test_answers_of_all_kinds_are_understood_and_kept(rules, tmp_path, server, answer, verdict):
    server.reply = lambda prompt: answer
    done = mine(tmp_path, "--judge", server.url)
    assert done.returncode == 0
    assert verdicts(done) == dict.fromkeys(("yes", "no", "unclear", "failed"), 0) | {verdict: 2}
    assert len(read(tmp_path / "items.jsonl")) == (2 if verdict == "yes" else 0)
    assert [row["reply"] for row in read(tmp_path / ANSWERS)] == [answer] * 2


def test_paid_answers_are_not_asked_for_again(rules, tmp_path, server):
    assert mine(tmp_path, "--judge", server.url).returncode == 0
    first = (tmp_path / "items.jsonl").read_bytes(), (tmp_path / ANSWERS).read_bytes()
    server.requests.clear()
    assert mine(tmp_path, "--judge", server.url, "--overwrite").returncode == 0
    assert not server.requests
    assert ((tmp_path / "items.jsonl").read_bytes(), (tmp_path / ANSWERS).read_bytes()) == first


def test_paid_answers_survive_a_kill(rules, tmp_path, server):
    held = threading.Event()
    server.reply = lambda prompt: held.wait(60) and "yes" if "not_too_long" in prompt else "yes"
    options = ("mine", "satd", tmp_path / "all", "-o", tmp_path / "items.jsonl", "--judge", server.url)
    command = [sys.executable, "-m", "simllm", *map(str, options)]
    running = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    record, deadline = tmp_path / ANSWERS, time.monotonic() + 60
    while not (record.exists() and b'"reply":"yes"' in record.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.kill()
    running.wait()
    held.set()
    server.requests.clear()
    assert run(*options).returncode == 0
    assert len(server.requests) == 1
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_a_user_file_named_like_the_answers_is_kept(rules, tmp_path, server):
    for content in ("mine", '{"question": "mine"}\n'):
        (tmp_path / ANSWERS).write_text(content)
        done = mine(tmp_path, "--judge", server.url)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert (tmp_path / ANSWERS).read_text() == content
    assert not server.requests


def too_long(prompt):
    message = json.dumps({"error": {"message": "maximum context length is 10 tokens"}}).encode()
    return (400, {}, message) if "not_too_long" in prompt else "yes"


def test_an_item_that_is_too_long_for_the_model_blocks_nothing(rules, tmp_path, server):
    server.reply = too_long
    done = mine(tmp_path, "--judge", server.url)
    assert done.returncode == 1
    assert verdicts(done) == {"yes": 1, "no": 0, "unclear": 0, "failed": 1}
    assert "warning: 1 item has no usable answer of the judge (beyond the context (HTTP" in done.stderr
    assert [item["function"] for item in read(tmp_path / "items.jsonl")] == ["kept"]
    server.requests.clear()
    assert mine(tmp_path, "--judge", server.url, "--overwrite").returncode == 1
    assert not server.requests
    server.reply = lambda prompt: "yes"
    assert mine(tmp_path, "--judge", server.url, "--overwrite", "--retry-failed").returncode == 0
    assert len(server.requests) == 1
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_a_limited_rate_ends_nothing(rules, tmp_path, server):
    replies = [(429, {"Retry-After": "0.2"}, b""), (429, {"Retry-After": "0.2"}, b"")]
    server.reply = lambda prompt: replies.pop() if replies else "yes"
    assert mine(tmp_path, "--judge", server.url).returncode == 0
    assert len(read(tmp_path / "items.jsonl")) == 2


def test_a_lost_answer_is_asked_for_again_by_the_same_command(rules, tmp_path, server, monkeypatch):
    server.reply = lambda prompt: (503, {}, b"busy") if "not_too_long" in prompt else "yes"
    options = ("--judge", server.url, "--retries", "0")
    done = mine(tmp_path, *options)
    assert (done.returncode, done.stdout) == (1, "")
    message = "1 reply is missing (HTTP status 503: busy); the same command continues"
    assert done.stderr == f"simllm: error: {message}\n"
    assert not (tmp_path / "items.jsonl").exists()
    server.requests.clear()
    server.reply = lambda prompt: "yes"
    monkeypatch.setattr(mining, "_mine_repository", None)  # the repository is mined already
    assert mine(tmp_path, *options).returncode == 0
    assert len(server.requests) == 1
    assert len(read(tmp_path / "items.jsonl")) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "items.jsonl", ANSWERS]


def test_an_answer_that_two_runs_lose_blocks_nothing(rules, tmp_path, server):
    server.reply = lambda prompt: (500, {}, b"bug") if "not_too_long" in prompt else "yes"
    options = ("--judge", server.url, "--retries", "0")
    assert mine(tmp_path, *options).returncode == 1
    done = mine(tmp_path, *options)
    assert done.returncode == 1
    assert verdicts(done) == {"yes": 1, "no": 0, "unclear": 0, "failed": 1}
    assert len(read(tmp_path / "items.jsonl")) == 1


def test_another_judge_is_asked_again(rules, tmp_path, server):
    server.reply = lambda prompt: (503, {}, b"") if "not_too_long" in prompt else "yes"
    assert mine(tmp_path, "--judge", server.url, "--retries", "0").returncode == 1
    server.requests.clear()
    server.reply = lambda prompt: "no"
    assert mine(tmp_path, "--judge", server.url, "--model", "other").returncode == 0
    assert len(server.requests) == 2
    assert (tmp_path / "items.jsonl").read_text() == ""
    assert len(read(tmp_path / ANSWERS)) == 3


def test_the_judge_shows_no_secret(rules, tmp_path, server):
    server.reply = lambda prompt: (401, {}, b"wrong key: sk-canary-123456")
    key = {"OPENAI_API_KEY": "sk-canary-123456"}
    done = mine(tmp_path, "--judge", server.url, env=key)
    assert done.returncode == 2
    assert "wrong key: [API key]" in done.stderr
    server.reply = lambda prompt: "yes, sk-canary-123456"
    assert mine(tmp_path, "--judge", server.url, env=key).returncode == 0
    done = mine(tmp_path, "--judge", "http://user:sk-canary-123456@host", "--overwrite", env=key)
    assert done.stderr.startswith("simllm: error: the address of the endpoint has a secret in it")
    assert not any(b"canary" in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())


def test_counts_as_json(rules, tmp_path, server):
    git(tmp_path, "init", "--bare", tmp_path / "all" / "empty")
    server.reply = too_long
    done = mine(tmp_path, "--judge", server.url, "-q", "-f", "json")
    counts = json.loads(done.stdout)
    assert done.stderr == ""
    assert counts["repositories"] == 2
    assert counts["skipped"] == {"empty": f"{tmp_path / 'all' / 'empty'}: HEAD points to no commit"}
    assert counts["verdicts"] == {"yes": 1, "no": 0, "unclear": 0, "failed": 1}
    assert counts["splits"] == {"train": 0, "validation": 1, "test": 0}
    assert counts["remaining"]["no duplicates"] == 4
    assert len(counts["failures"]) == 1


def test_a_judge_from_a_file_with_a_template_of_its_own_judges_items_of_others(theirs, tmp_path, server):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ask.j2").write_text("{{ item.team }}|{{ comment }}|{{ language }}")
    (tmp_path / "conf" / "judge.toml").write_text(
        f'base_url = "{server.url}"\nmodel = "m"\ntemperature = 0.5\ntemplate = "ask.j2"\n'
    )
    theirs.write_text("".join(json.dumps({"team": "y", **row}) + "\n" for row in THEIRS[:2]))
    server.reply = lambda prompt: "Answer: unclear" if prompt.startswith("x") else "So it is.\nAnswer: yes"
    options = ("--items", theirs, "-o", tmp_path / "kept.jsonl", "--judge", tmp_path / "conf" / "judge.toml")
    done = run("mine", "satd", *options)
    assert verdicts(done) == {"yes": 1, "no": 0, "unclear": 1, "failed": 0}
    assert [item["id"] for item in read(tmp_path / "kept.jsonl")] == [8]
    bodies = [body for _, _, body in server.requests]
    assert {(body["model"], body["temperature"]) for body in bodies} == {("m", 0.5)}
    prompts = {body["messages"][0]["content"] for body in bodies}
    assert prompts == {"x|TODO: check the range of a|java", "y|# TODO: return two|python"}


@pytest.mark.parametrize("name", ["satd-judge", "satd-judge-cot"])
def test_ready_questions_of_the_judge(rules, tmp_path, server, name):
    server.reply = lambda prompt: "1. It asks for two.\n2. One line.\n3. Yes.\n4. No doubt.\n\nAnswer: no"
    done = mine(tmp_path, "--judge", server.url, "--template", name)
    assert verdicts(done) == {"yes": 0, "no": 2, "unclear": 0, "failed": 0}
    [prompt, _] = [body["messages"][0]["content"] for _, _, body in server.requests]
    assert ("Think in four short steps" in prompt) == (name == "satd-judge-cot")
    assert '"unclear"' in prompt or "Answer: unclear" in prompt


def test_unknown_template_of_the_judge(rules, tmp_path, server):
    done = mine(tmp_path, "--judge", server.url, "--template", "satd-juge")
    assert done.returncode == 2
    assert "template 'satd-juge': expected a file, or one of satd-judge, satd-judge-cot, " in done.stderr
    (tmp_path / "a.j2").write_text("{{ komment }}")
    done = mine(tmp_path, "--judge", server.url, "--template", tmp_path / "a.j2")
    assert f"{tmp_path / 'a.j2'}: 'komment' is undefined; known: " in done.stderr
    assert not server.requests


def test_agreement_of_the_judge_with_people(tmp_path, server):
    """Five items: of three real ones, two are kept; of two others, one is unclear and one is kept."""
    rows = [theirs_of(n, f"TODO: return {n} now", f"return {n}") for n in range(100, 106)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = {100: "yes", 101: True, 102: "Yes", 103: "no", 104: 0, 999: "no"}
    (tmp_path / "labels.jsonl").write_text(
        "".join(json.dumps({"id": id_, "label": label}) + "\n" for id_, label in labels.items())
    )
    answers = {"100": "yes", "101": "yes", "102": "no", "103": "hm", "104": "yes", "105": "no"}
    server.reply = lambda prompt: next(answer for n, answer in answers.items() if n in prompt)
    options = (
        "--items",
        tmp_path / "in.jsonl",
        "--judge",
        server.url,
        "--labelled",
        tmp_path / "labels.jsonl",
    )
    done = run("mine", "satd", *options, "-o", tmp_path / "kept.jsonl", "-f", "json")
    found = funnel(done)["agreement"]
    assert (found["labelled"], found["labels without a verdict"], found["unclear"]) == (5, 1, 1)
    values = [found[name] for name in ("precision", "recall", "f1", "accuracy")]
    assert values == pytest.approx([2 / 3, 2 / 3, 2 / 3, 3 / 5])
    # Chance: (3 · 3 + 2 · 2) / 25 = 13 / 25.
    assert found["kappa"] == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert found["share of real changes without a judge"] == 3 / 5
    assert "simllm: agreement with 5 labels:\n" in done.stderr
    assert "     0.667  precision (0.21 to 0.94)\n" in done.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": 1, "label": "perhaps"}', 'line 1: expected yes or no under "label"'),
        ('{"id": 1, "label": "yes"}\n{"id": "1", "label": "no"}', "line 2: a second label of item 1"),
        ('{"label": "yes"}', 'line 1: expected the id of an item under "id"'),
        ("", "empty; expected labels"),
    ],
)
def test_wrong_labels_give_one_line_before_the_first_question(rules, tmp_path, server, lines, message):
    (tmp_path / "labels.jsonl").write_text(lines)
    done = mine(tmp_path, "--judge", server.url, "--labelled", tmp_path / "labels.jsonl")
    assert done.returncode == 2
    assert message in done.stderr
    assert not server.requests
