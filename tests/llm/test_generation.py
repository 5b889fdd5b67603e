"""`simllm generate`: items in, replies out; faults of the endpoint, resuming, replays and labels."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from simllm.errors import InputError
from simllm.llm import LostReplyError, Model, generate, read_model
from tests.command import run

ITEMS = [{"id": f"i{number}", "text": f"text {number}"} for number in range(12)]
TEMPLATE = "Repeat: {{ text }}"


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def files(tmp_path):
    """Write items and a template; return a function that runs the command with both."""
    items = write(tmp_path / "items.jsonl", ITEMS)
    (tmp_path / "t.j2").write_text(TEMPLATE)

    def command(*options, out="out.jsonl", **more):
        return run("generate", items, "--template", tmp_path / "t.j2", "-o", tmp_path / out, *options, **more)

    return command


def echo(body):
    return body["messages"][-1]["content"].removeprefix("Repeat: ").upper()


def error(status, message, **headers):
    return status, headers, json.dumps({"error": {"message": message}}).encode()


def test_rows_have_the_item_and_its_replies(server, files, tmp_path):
    server.reply = echo
    done = files(
        "--base-url", server.url, "--model", "M", "--samples", 2, "--temperature", 0.5, "--top-p", 0.9,
        "--max-tokens", 20, "--seed", 7, "--stop", "\n\n", "--stop", "END",
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == "simllm: replies 24, failed 0, prompt tokens 240, completion tokens 168\n"
    rows = read(tmp_path / "out.jsonl")
    assert [(row["id"], row["sample"]) for row in rows] == [(one["id"], n) for one in ITEMS for n in (1, 2)]
    first = rows[0]
    assert first.pop("seconds") >= 0
    assert len(first["request"].pop("messages")) == 64
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 20, "seed": 7, "stop": ["\n\n", "END"]}
    assert first == {
        "id": "i0", "text": "text 0", "sample": 1, "reply": "TEXT 0", "failure": None,
        "finish_reason": "stop", "prompt_tokens": 10, "completion_tokens": 7,
        "request": {"model": "M", **sampling},
    }  # fmt: skip
    seeds = Counter(body["seed"] for _, _, body in server.requests)
    assert seeds == {7: 12, 8: 12}
    assert not any(b"canary" in file.read_bytes() for file in tmp_path.iterdir())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["items.jsonl", "out.jsonl", "t.j2"]


def test_base_models_continue_the_prompt(server, files, tmp_path):
    server.reply = lambda body: body["prompt"][-1]
    assert files("--base-url", server.url, "--completions", "--model", "M").returncode == 0
    assert {path for path, _, _ in server.requests} == {"/v1/completions"}
    assert [row["reply"] for row in read(tmp_path / "out.jsonl")] == [one["text"][-1] for one in ITEMS]


def test_the_same_command_asks_nothing_twice_and_changes_nothing(server, files, tmp_path):
    server.reply = echo
    files("--base-url", server.url)
    before, asked = (tmp_path / "out.jsonl").stat(), len(server.requests)
    assert files("--base-url", server.url).returncode == 0
    after = (tmp_path / "out.jsonl").stat()
    assert (len(server.requests), after.st_ino, after.st_mtime) == (asked, before.st_ino, before.st_mtime)
    # More samples and items are added to what is there.
    assert files("--base-url", server.url, "--samples", 2).returncode == 0
    assert len(server.requests) == 2 * asked


def test_replies_to_other_questions_are_not_thrown_away(server, files, tmp_path):
    server.reply = echo
    files("--base-url", server.url, "--temperature", 0)
    before = (tmp_path / "out.jsonl").read_bytes()
    done = files("--base-url", server.url, "--temperature", 1)
    assert done.returncode == 2
    assert "out.jsonl: has replies to other questions" in done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert len(server.requests) == len(ITEMS)
    assert files("--base-url", server.url, "--temperature", 1, "--overwrite").returncode == 0
    (tmp_path / "mine.jsonl").write_text("my own file\n")
    done = files("--base-url", server.url, out="mine.jsonl")
    assert (done.returncode, "exists already" in done.stderr) == (2, True)
    for mine in ("my own file", '{"my": "own file"}'):
        (tmp_path / "new.jsonl.partial").write_text(mine)
        done = files("--base-url", server.url, out="new.jsonl")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert (tmp_path / "new.jsonl.partial").read_text() == mine


def test_a_replay_is_the_same_byte_for_byte_without_a_network(server, files, tmp_path):
    server.reply = lambda body: error(400, "content management policy") if "5" in str(body) else echo(body)
    files("--base-url", server.url, "--model", "M", "--samples", 3, "--seed", 1)
    asked = len(server.requests)
    done = files("--replay", tmp_path / "out.jsonl", out="again.jsonl")
    assert done.returncode == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert files("--replay", tmp_path / "out.jsonl", out="again.jsonl").returncode == 0  # its own output
    # Labels are read anew from the recorded replies.
    assert files("--replay", tmp_path / "out.jsonl", "--labels", "text,word", out="l.jsonl").returncode == 0
    assert {row["predicted"] for row in read(tmp_path / "l.jsonl")} == {"text", None}
    (tmp_path / "t.j2").write_text("Another prompt: {{ text }}")
    done = files("--replay", tmp_path / "out.jsonl", out="other.jsonl")
    assert done.returncode == 2
    assert "out.jsonl: has no reply to this request (item i0, sample 1)" in done.stderr
    assert len(server.requests) == asked
    done = files("--replay", tmp_path / "out.jsonl", "--model", "M", out="x.jsonl")
    assert (done.returncode, "--model goes with an endpoint" in done.stderr) == (2, True)


def test_a_replay_replaces_no_replies_of_another_generation(server, files, tmp_path):
    for name in ("one", "two"):
        server.reply = lambda body, name=name: name
        assert files("--base-url", server.url, "--model", name, out=name).returncode == 0
    paid = (tmp_path / "two").read_bytes()
    done = files("--replay", tmp_path / "one", out="two")
    assert (done.returncode, (tmp_path / "two").read_bytes()) == (2, paid)
    assert "two: exists already" in done.stderr
    assert files("--replay", tmp_path / "one", "--overwrite", out="two").returncode == 0
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


FOR_GOOD = {
    "beyond the context (HTTP status 400": error(400, "maximum context length is 10 tokens"),
    "HTTP status 400: refused by the content": error(400, "refused by the content management policy"),
    "content filter": (
        200, {}, b'{"choices": [{"message": {"content": "be"}, "finish_reason": "content_filter"}]}',
    ),
    "refusal: I cannot": (
        200, {}, b'{"choices": [{"message": {"content": null, "refusal": "I cannot"}}]}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("failure", FOR_GOOD)
def test_an_item_that_fails_for_good_blocks_nothing(server, files, tmp_path, failure):
    server.reply = lambda body: FOR_GOOD[failure] if "text 3" in str(body) else echo(body)
    done = files("--base-url", server.url)
    assert done.returncode == 0
    assert f"warning: 1 of 12 requests failed for good (item i3; 1 times: {failure}" in done.stderr
    rows = read(tmp_path / "out.jsonl")
    assert [row["id"] for row in rows if row["reply"] is None] == ["i3"]
    assert rows[3]["failure"].startswith(failure)
    server.requests.clear()
    assert files("--base-url", server.url).returncode == 0
    assert not server.requests
    server.reply = echo
    assert files("--base-url", server.url, "--retry-failed").returncode == 0
    assert len(server.requests) == 1
    assert [row["reply"] for row in read(tmp_path / "out.jsonl")] == [one["text"].upper() for one in ITEMS]


def test_status_1_if_no_request_gets_a_reply(server, files):
    server.reply = lambda body: error(400, "temperature is not supported")
    done = files("--base-url", server.url, "--temperature", 1)
    assert done.returncode == 1
    assert "12 of 12 requests failed for good" in done.stderr
    server.reply = echo
    assert files("--base-url", server.url, "--temperature", 1, "--retry-failed").returncode == 0


def test_passing_faults_are_overcome(server, files, tmp_path):
    """Rate limits, errors, cut connections and nonsense, once for each item."""
    faults = [
        (429, {"Retry-After": "0.01"}, b"{}"), (500, {}, b"oh"), None,
        (200, {"Content-Length": "99"}, b"cut"),
        (503, {"Retry-After": "0.01"}, b"<html>"),
    ]  # fmt: skip
    seen = set()

    def reply(body):
        text = str(body)
        if text in seen:
            return echo(body)
        seen.add(text)
        return faults[len(seen) % len(faults)]

    server.reply = reply
    assert files("--base-url", server.url, "--parallel", 12).returncode == 0
    assert [row["reply"] for row in read(tmp_path / "out.jsonl")] == [one["text"].upper() for one in ITEMS]


@pytest.mark.parametrize("nonsense", [b"<html>", b'{"choices": []}', b"[]", b'{"choices":[{"text":1}]}', b""])
def test_a_reply_that_cannot_be_read_is_asked_for_again_by_the_same_command(
    server, files, tmp_path, nonsense
):
    server.reply = lambda body: (200, {}, nonsense) if "text 3" in str(body) else echo(body)
    done = files("--base-url", server.url, "--retries", 0)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("simllm: error: 1 reply is missing (the endpoint does not answer ")
    assert done.stderr.endswith("; the same command continues\n")
    assert not (tmp_path / "out.jsonl").exists()
    server.requests.clear()
    done = files("--base-url", server.url, "--retries", 0)  # lost twice: it fails
    assert len(server.requests) == 1
    assert done.returncode == 0
    assert read(tmp_path / "out.jsonl")[3]["failure"].startswith("lost twice: the endpoint does not")


def test_a_lost_endpoint_ends_the_run_which_resumes(server, files, tmp_path):
    working = iter(range(100))
    server.reply = lambda body: echo(body) if next(working) < 4 else (500, {}, b"gone")
    write(tmp_path / "items.jsonl", [{"id": n, "text": f"text {n}"} for n in range(40)])
    done = files("--base-url", server.url, "--retries", 0, "--parallel", 1)
    assert done.returncode == 1
    assert done.stderr.startswith("simllm: error: the endpoint is lost: HTTP status 500: gone; ")
    assert len(server.requests) == 14
    server.requests.clear()
    server.reply = echo
    assert files("--base-url", server.url).returncode == 0
    assert len(server.requests) == 36


def test_refused_keys_and_unreachable_servers_are_bad_input(server, files, tmp_path):
    server.reply = lambda body: (401, {}, b"wrong key sk-canary-123456")
    done = files("--base-url", server.url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "wrong key [API key]" in done.stderr
    done = files("--base-url", "http://127.0.0.1:9/v1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["items.jsonl", "t.j2"]


def test_the_cost_is_limited_and_paid_replies_are_kept(server, files, tmp_path):
    server.reply = echo
    (tmp_path / "prices.json").write_text('{"M": {"input": 100000, "output": 0}}')  # 1 a request
    options = (
        "--base-url",
        server.url,
        "--model",
        "M",
        "--prices",
        tmp_path / "prices.json",
        "--parallel",
        1,
    )
    done = files(*options, "--max-cost", 5)
    assert done.returncode == 1
    assert done.stderr == "simllm: error: the largest cost (5) is reached; the same command continues\n"
    assert len(server.requests) == 5
    assert files(*options, "--max-cost", 5).returncode == 1
    assert len(server.requests) == 5
    assert files(*options, "--max-cost", 100).returncode == 0
    assert len(server.requests) == len(ITEMS)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ txt }}", "t.j2: 'txt' is undefined; known: id, item, text\n"),
        ("a\n{{ text", "t.j2, line 2: "),
        ("{{ text.nothing }}", "items.jsonl, line 1: "),
        ("{{ other }}", "items.jsonl, line 1: {folder}/t.j2: 'other' is undefined"),
        ("{{ ''.__class__ }}", "t.j2, line 1: templates cannot use '__class__'"),
        ("{% include '/etc/passwd' %}", "t.j2: cannot include /etc/passwd"),
        ("{{ text|random }}", "t.j2, line 1: No filter named 'random'"),
        ("{{ item.items }}", 't.j2: a function is printed; a field of its name is item["name"]'),
        ("{{ item.values()|map('upper') }}", "t.j2: a filter's values are printed, without |list or |join"),
        (" \n", "items.jsonl, line 1: the template gives an empty prompt"),
        ("{% for i in range(99999999) %}{% endfor %}", "items.jsonl, line 1: "),
    ],
)
def test_a_wrong_template_is_found_before_the_first_request(server, files, tmp_path, template, message):
    (tmp_path / "t.j2").write_text(template)
    if "other" in template:
        write(tmp_path / "items.jsonl", [*ITEMS, {"id": "last", "other": 1}])
    done = files("--base-url", server.url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message.format(folder=tmp_path) in done.stderr
    assert not server.requests


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"text": "x"}], 'line 1: expected the id of the item under "id"'),
        ([{"id": "a"}, {"id": "a"}], "line 2: has the id 'a' of "),
        ([{"id": 1}, {"id": "1"}], "line 2: has the id '1' of "),
        ([{"id": None}], 'line 1: expected a text or a whole number under "id"'),
        ([{"id": "a", "reply": "x"}], 'line 1: has the field "reply", which the result would replace'),
        ([], "items.jsonl: empty"),
    ],
)
def test_wrong_items(server, files, tmp_path, items, message):
    write(tmp_path / "items.jsonl", items)
    done = files("--base-url", server.url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "expected --base-url URL, or OPENAI_BASE_URL"),
        (("--base-url", "http://x/v1", "--samples", 0), "--samples 0: expected"),
        (("--base-url", "http://x/v1", "--temperature", -1), "--temperature -1.0: expected"),
        (("--base-url", "http://x/v1", "--top-p", 0), "--top-p 0.0: expected"),
        (("--base-url", "http://x/v1", "--stop", ""), "--stop: expected a text"),
        (("--base-url", "http://x/v1", "--parallel", 0), "--parallel 0: expected"),
        (("--base-url", "http://x/v1", "--logprobs"), "--logprobs needs --labels"),
        (("--base-url", "http://x/v1", "--labels", "yes"), "--labels: expected two labels"),
        (("--base-url", "http://x/v1", "--labels", "yes,Yes"), "--labels: a label stands twice"),
        (("--base-url", "http://x/v1", "--max-cost", 1), "--max-cost needs --prices FILE"),
        (("--base-url", "http://x/v1", "--keep", "no"), "--keep no: no item has this field"),
    ],
)
def test_wrong_options(files, monkeypatch, options, message):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    done = files(*options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_a_model_from_a_file(server, files, tmp_path):
    server.reply = echo
    (tmp_path / "m.toml").write_text(
        f'base_url = "{server.url}"\nmodel = "M"\ntemperature = 0\nstop = ["X"]\n'
        'key_variable = "MY_API_KEY"\n'
        "parallel = 2\nextra = {top_k = 3}\nprice = {input = 1, output = 2}\n"
    )
    done = files("--model-file", tmp_path / "m.toml", "--temperature", 1, env={"MY_API_KEY": "k-123456789"})
    assert done.returncode == 0
    [_, headers, body] = server.requests[0]
    del body["messages"]
    assert body == {"model": "M", "temperature": 1.0, "stop": ["X"], "top_k": 3}
    assert headers["Authorization"] == "Bearer k-123456789"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modell = 'M'\ntop_p = 2", r"m.toml: unknown key modell; top_p 2.0: expected"),
        ("model = ", "m.toml: not TOML"),
        (f"seed = {'7' * 5000}", "m.toml: not TOML"),
        ("api = 'x'", "m.toml: api x: expected chat or completions"),
        ("key_variable = 'HOME'", "m.toml: key_variable HOME: expected a name such as"),
        ("extra = {seed = 1}", "m.toml: extra seed: has a place of its own"),
    ],
)
def test_wrong_model_files(tmp_path, text, message):
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_model(tmp_path / "m.toml")


def test_the_python_interface(server, tmp_path):
    server.reply = echo
    model = Model(base_url=f"{server.url}/v1", stop="\n", temperature=0)
    rows = generate(ITEMS, TEMPLATE, model, samples=2)
    assert [row["reply"] for row in rows] == [one["text"].upper() for one in ITEMS for _ in (1, 2)]
    assert server.requests[0][2]["stop"] == ["\n"]
    seen = []
    same = generate(ITEMS, TEMPLATE, model, output=tmp_path / "o.jsonl", progress=seen.append, keep=[])
    assert [row["reply"] for row in same] == [row["reply"] for row in rows[::2]]
    assert "text" not in same[0]
    assert (seen[-1].done, seen[-1].total, seen[-1].asked) == (12, 12, 12)
    server.reply = lambda body: (500, {}, b"")
    with pytest.raises(LostReplyError):
        generate(ITEMS, TEMPLATE, Model(base_url=f"{server.url}/v1", retries=0))


@pytest.mark.slow
def test_killed_at_any_moment_the_same_command_asks_nothing_twice(server, tmp_path):
    """A killed run may lose the replies under way; what is on the disk is never asked for again."""
    items = write(tmp_path / "items.jsonl", [{"id": n, "text": f"text {n}"} for n in range(150)])
    (tmp_path / "t.j2").write_text(TEMPLATE)
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    parallel, samples = 4, 2
    command = [
        sys.executable, "-m", "simllm", "generate", items, "--template", tmp_path / "t.j2", "--base-url",
        server.url, "--parallel", parallel, "--samples", samples, "--seed", 5, "-o", out,
    ]  # fmt: skip
    command = [str(word) for word in command]
    chance = random.Random(0)

    def reply(body):
        kind = chance.random()
        if kind < 0.03:
            return 429, {"Retry-After": "0.05"}, b"{}"
        return (500, {}, b"{}") if kind < 0.05 else None if kind < 0.07 else echo(body)

    def lines():
        return partial.read_bytes().count(b"\n") if partial.exists() else 0

    server.reply, server.delay = reply, 0.01
    recorded, kills = Counter(), 0
    while kills < 20:
        server.requests.clear()
        wanted = lines() + chance.randrange(1, 12)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while process.poll() is None and lines() < wanted:
            assert time.monotonic() < deadline
        assert process.poll() is None, "the run ended before it was killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        asked = {(body["messages"][0]["content"], body["seed"]) for _, _, body in server.requests}
        assert not asked & recorded.keys()
        whole = partial.read_bytes().split(b"\n")[:-1]
        rows = [json.loads(line) for line in whole]
        recorded = Counter((f"Repeat: text {row['id']}", row["request"]["seed"]) for row in rows)
        assert set(recorded.values()) == {1}
    server.requests.clear()
    server.reply, server.delay = echo, 0
    assert subprocess.run(command, check=False).returncode == 0
    assert len(server.requests) == 150 * samples - recorded.total()
    rows = read(out)
    assert [(row["id"], row["sample"], row["reply"]) for row in rows] == [
        (n, sample, f"TEXT {n}") for n in range(150) for sample in (1, 2)
    ]
    assert not partial.exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_paid(server, tmp_path):
    items = write(tmp_path / "items.jsonl", ITEMS)
    (tmp_path / "t.j2").write_text(TEMPLATE)
    server.reply = lambda body: echo(body) if "text 0" in str(body) else time.sleep(30) or "late"
    words = ["generate", items, "--template", tmp_path / "t.j2", "--base-url", server.url]
    command = [sys.executable, "-m", "simllm", *map(str, [*words, "-o", tmp_path / "out.jsonl"])]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    partial, deadline = tmp_path / "out.jsonl.partial", time.monotonic() + 60
    while not (partial.exists() and b"TEXT 0" in partial.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - begun < 10
    assert process.returncode == 130
    assert "the same command continues" in errors
    assert len(read(partial)) == 1


DEBT = {
    "id": "f", "language": "python", "comment": "# TODO: return two",
    "source": "def f():\n    # TODO: return two", "reference": "def f():\n    return 2",
}  # fmt: skip


@pytest.mark.parametrize("name", ["satd-repay", "satd-repay-explain", "satd-repay-think", "satd-repay-steps"])
def test_ready_templates_ask_for_a_repayment(server, tmp_path, name):
    items = write(tmp_path / "items.jsonl", [DEBT])
    server.reply = lambda body: "Done."
    done = run("generate", items, "--template", name, "--base-url", server.url, "-o", tmp_path / "out.jsonl")
    assert done.returncode == 0
    [(_, _, body)] = server.requests
    prompt = body["messages"][0]["content"]
    assert f"```python\n{DEBT['source']}\n```" in prompt
    assert prompt.count("# TODO: return two") == 2
    assert "return 2" not in prompt  # the reference
    assert "one block of code" in " ".join(prompt.split())


def test_ready_template_of_an_unknown_name(server, files, tmp_path):
    items = write(tmp_path / "items.jsonl", ITEMS)
    for name, message in (
        (
            "satd-repai",
            "template 'satd-repai': expected a file, or one of satd-judge, satd-judge-cot, satd-repay",
        ),
        ("satd-repay", "satd-repay.j2: 'comment' is undefined; known: id, item, text"),
        (tmp_path / "none.j2", f"template '{tmp_path / 'none.j2'}': expected a file, or one of satd-judge, "),
    ):
        done = run(
            "generate", items, "--template", name, "--base-url", server.url, "-o", tmp_path / "o.jsonl"
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
    assert not server.requests
