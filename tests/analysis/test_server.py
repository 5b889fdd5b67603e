"""The server of `simllm serve`: its scores, limits and answers, without a process of its own."""

import asyncio
import json
import re
import socket
import threading

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

import uvicorn
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from simllm import SimLLM
from simllm.analysis.reward import text_after
from simllm.analysis.server import transport
from simllm.analysis.server.api import Service
from simllm.analysis.server.batches import Batcher, BusyError, Limits
from simllm.analysis.server.transport import _Server
from simllm.errors import InputError
from simllm.metrics import Example
from tests.command import run

CODE = "int max(int a, int b) { return a > b ? a : b; }"
PAIRS = [
    {"candidate": "adds two lists", "reference": "combines 2 arrays", "code": "def add(a, b): return a + b"},
    {"candidate": "gets the name", "reference": "returns the name", "code": CODE, "language": "java"},
    {"candidate": "Opens a file. Returns its size.", "reference": "opens the file", "code": CODE},
    {"candidate": "gets the name", "reference": "", "code": ""},
    {"candidate": "caf\u00e9 \u4e2d", "reference": "reads " * 300, "code": "x = 1", "language": "python"},
]


def started(load, limits=None):
    batcher, loaded = Batcher(load, limits or Limits()), threading.Event()
    batcher.start(loaded.set)
    assert loaded.wait(120)
    assert batcher.failure is None
    return batcher


def client(batcher, token=None):
    app = Service(batcher, token).app
    return TestClient(app, base_url="http://127.0.0.1:8644", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def metric():
    return SimLLM()


@pytest.fixture(scope="module")
def server(metric):
    """A client of a server with the included model and the usual limits."""
    batcher = started(lambda: metric)
    yield client(batcher)
    batcher.end()


def pairs_for(against):
    kept = {
        "reference": ("reference",),
        "code": ("code", "language"),
        "both": ("reference", "code", "language"),
    }
    return [{k: v for k, v in pair.items() if k in ("candidate", *kept[against])} for pair in PAIRS]


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({}, []),
        ({"scale": "percentile"}, ["--scale", "percentile"]),
        ({"scale": "same"}, ["--measure", "same"]),
        ({"scale": "graded"}, ["--measure", "graded"]),
        ({"against": "code"}, ["--against", "code"]),
        ({"against": "both"}, ["--against", "both"]),
    ],
)
def test_the_numbers_are_those_of_the_command_to_the_last_digit(server, tmp_path, body, options):
    pairs = pairs_for(body.get("against", "reference"))
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    done = run("score", "--jsonl", tmp_path / "pairs.jsonl", "-f", "json", *options)
    assert done.returncode == 0, done.stderr
    expected, reply = json.loads(done.stdout), server.post("/score", json={"pairs": pairs, **body}).json()
    for row, found in zip(expected["rows"], reply["rows"], strict=True):
        numbers = {name: value for name, value in row.items() if isinstance(value, float)}
        assert repr(numbers) == repr({name: found[name] for name in numbers})
    same = {key: value for key, value in expected.items() if key not in ("rows", "items")}
    assert "signature" in same
    assert "warnings" in same
    assert repr(same) == repr({key: reply[key] for key in same})


@pytest.mark.parametrize("against", ["reference", "code", "both"])
def test_waiting_requests_are_scored_together_and_each_has_its_own_counts(metric, against):
    examples = [
        Example(pair["candidate"], pair["reference"], pair["code"], pair.get("language")) for pair in PAIRS
    ]
    groups = [examples[:1], examples[1:4], examples[4:], examples[2:3]]
    batcher = Batcher(lambda: metric, Limits())
    batcher.metric = metric  # before the thread runs, so that all requests wait when it begins
    results = [batcher.submit(group, against) for group in groups]
    batcher.start(lambda: None)
    for group, result in zip(groups, results, strict=True):
        alone, scores = metric.score_groups([group], against)[0], result.result(120)
        for name in ("values", "same", "graded", "fits"):
            expected = getattr(alone, name)
            found = getattr(scores, name)
            assert (found is None) == (expected is None)
            if expected is not None:
                assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-6)
        for name in ("empty", "unreadable", "truncated", "deduplicated", "signature", "warnings"):
            assert getattr(scores, name) == getattr(alone, name)
    batcher.end()
    sample = batcher.measured.registry.get_sample_value
    assert sample("simllm_batch_pairs_count") == 1
    assert sample("simllm_batch_pairs_sum") == sum(map(len, groups))
    assert sample("simllm_pairs_total", {"against": against}) == sum(map(len, groups))
    assert sample("simllm_waiting_pairs") == 0


def test_large_requests_and_other_kinds_are_scored_apart(metric):
    batcher = Batcher(lambda: metric, Limits())
    batcher.metric = metric
    together = metric.engine.batch_tokens // 4
    many = [Example("gets the name", f"returns name {i}") for i in range(together)]
    code = [Example("gets the name", None, CODE)]
    jobs = [(many[:2], "reference"), (many, "reference"), (code, "code"), (many[2:4], "reference")]
    results = [batcher.submit(*job) for job in jobs]
    batcher.start(lambda: None)
    for (examples, against), result in zip(jobs, results, strict=True):
        assert len(result.result(120).values) == len(examples), against
    batcher.end()
    sample = batcher.measured.registry.get_sample_value
    assert sample("simllm_batch_pairs_count") == 3  # the first and the last are one batch
    # Nothing was scored together with it, so that the numbers are those of the class.
    pairs = [(example.candidate, example.reference) for example in many]
    (_, expected), *_ = metric.stream(pairs)
    assert results[1].result().values.tolist() == expected.values.tolist()


def test_a_text_that_is_too_long_fails_its_own_request_only(head_folder):
    metric = SimLLM(head_folder, on_long="error")
    batcher = Batcher(lambda: metric, Limits())
    batcher.metric = metric
    short, long = Example("adds a list", "adds lists"), Example("adds a list", "adds lists " * 100)
    results = [batcher.submit(examples, "reference") for examples in ([short], [short, long], [short])]
    batcher.start(lambda: None)
    assert results[0].result(60).values.tolist() == results[2].result(60).values.tolist()
    with pytest.raises(InputError, match=r"^reference 2: \d+ tokens, more than the model's 64$"):
        results[1].result(60)
    answer = client(batcher).post("/score", json={"pairs": [{"candidate": "a", "reference": "b " * 200}]})
    assert answer.status_code == 422
    assert re.fullmatch(r"reference 1: \d+ tokens, more than the model's 64", answer.json()["error"])
    batcher.end()


JSON = {"Content-Type": "application/json"}
PAIR = {"candidate": "a", "reference": "b"}
BAD = [
    ("/score", {"json": {"pairs": [PAIR, {"candidate": "a", "reference": 3}]}}, 422,
     "pairs[1].reference: expected a text"),
    ("/score", {"json": {"pairs": [{"candidat": "a", "reference": "b"}]}}, 422,
     "pairs[0].candidate: missing; and 1 more problem"),
    ("/score", {"json": {"pairs": [{**PAIR, "id": 1}]}}, 422, "pairs[0].id: unknown key"),
    ("/score", {"json": {"pairs": [{"candidate": "a"}]}}, 422, 'pairs[0]: expected a text under "reference"'),
    ("/score", {"json": {"pairs": [PAIR], "against": "both"}}, 422, 'pairs[0]: expected a text under "code"'),
    ("/score", {"json": {"pairs": [PAIR], "against": "it"}}, 422,
     "against: expected 'reference', 'code' or 'both'"),
    ("/score", {"json": {"pairs": [PAIR], "against": "code", "scale": "same"}}, 422,
     'pairs[0]: expected a text under "code"'),
    ("/score", {"json": {"pairs": [{"candidate": "a", "code": "b"}], "against": "code", "scale": "same"}},
     422, "no meaning head: the model folder has none, or tokens are matched one by one"),
    ("/score", {"json": {"pairs": []}}, 422, "pairs: expected at least 1 item, not 0"),
    ("/score", {"json": {"pairs": "a"}}, 422, "pairs: expected a list"),
    ("/score", {"json": {}}, 422, "pairs: missing"),
    ("/score", {"json": [1]}, 422, "the body: expected an object"),
    ("/score", {"content": b"", "headers": JSON}, 422, "the body: missing"),
    ("/score", {"content": b'{"pairs": [}', "headers": JSON}, 400,
     "the body: not JSON (Expecting value: character 11)"),
    ("/score", {"content": b"\xff", "headers": JSON}, 400,
     "the body: expected JSON in UTF-8, not nested deeply"),
    ("/score", {"content": b"[" * 100_000, "headers": JSON}, 400,
     "the body: expected JSON in UTF-8, not nested deeply"),
    ("/score", {"content": b"{}"}, 415, "Content-Type is missing: expected application/json"),
    ("/score", {"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415,
     "Content-Type text/plain: expected application/json"),
    ("/score", {"content": b" " * 5_000_000, "headers": JSON}, 413,
     "the body: expected at most 4,194,304 bytes"),
    ("/score", {"content": iter([b" " * 3_000_000] * 2), "headers": JSON}, 413,
     "the body: expected at most 4,194,304 bytes"),
    ("/score", {"json": {"pairs": [PAIR] * 1025}}, 413, "1,025 pairs; expected at most 1,024 in a request"),
    ("/nothing", {"json": {}}, 404, "POST /nothing: no such address; GET /docs lists them"),
    ("/score/", {"json": {"pairs": [PAIR]}}, 404, "POST /score/: no such address; GET /docs lists them"),
    ("/health", {"json": {}}, 405, "POST /health: no such address; GET /docs lists them"),
    ("/score", {"json": {}, "headers": {"Host": "attacker.example"}}, 403,
     "Host: expected 127.0.0.1 or localhost; a server with a token answers to any name"),
    ("/reward", {"json": {}}, 422,
     "expected completions and references, or query, prompts and labels as OpenRLHF sends them"),
    ("/reward", {"json": {"completions": ["a"]}}, 422, "completions and references go together"),
    ("/reward", {"json": {"completions": [], "references": []}}, 422,
     "0 completions, 0 references: expected as many of each, at least one"),
    ("/reward", {"json": {"completions": ["a"], "references": ["a", "b"]}}, 422,
     "1 completions, 2 references: expected as many of each, at least one"),
    ("/reward", {"json": {"completions": [[{"role": "assistant"}]], "references": ["a"]}}, 422,
     "completions[0]: expected a text, or a list of chat messages with texts"),
    ("/reward", {"json": {"query": ["a b"], "prompts": ["b"], "labels": ["c"]}}, 422,
     "query[0]: expected a text that begins with its prompt"),
    ("/reward", {"json": {"query": ["a b"], "prompts": ["a", "b"], "labels": ["c"]}}, 422,
     "1 query, 2 prompts, 1 labels: expected as many of each, at least one"),
    ("/reward", {"json": {"query": ["a b"], "prompts": ["a"], "labels": [None]}}, 422,
     "labels[0]: expected a text"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "request_", "status", "message"), BAD)
def test_a_wrong_request_gets_one_line(server, path, request_, status, message):
    answer = server.post(path, **request_)
    assert (answer.status_code, answer.json()) == (status, {"error": message})


def test_half_characters_are_replaced_as_in_the_command(server):
    body = b'{"pairs": [{"candidate": "adds \\ud83d lists", "reference": "adds lists"}]}'
    odd = server.post("/score", content=body, headers=JSON).json()
    pair = {"candidate": "adds \ufffd lists", "reference": "adds lists"}
    assert odd == server.post("/score", json={"pairs": [pair]}).json()


def test_rewards_in_the_form_of_openrlhf(server, metric):
    prompt = "<|im_start|>user\nSummarize: def add(a, b)<|im_end|>\n<|im_start|>assistant\n"
    queries = [f"{prompt}adds two numbers<|im_end|>\n", f"{prompt}opens a file<|im_end|><|endoftext|>"]
    body = {"query": queries, "prompts": [prompt] * 2, "labels": ["returns the sum"] * 2}
    reply = server.post("/reward", json=body).json()
    expected = metric.score(["adds two numbers", "opens a file"], body["labels"])
    assert reply["rewards"] == reply["scores"] == expected.values.tolist()
    assert reply["signature"] == expected.signature
    chat = [[{"role": "assistant", "content": "adds two numbers"}], "opens a file"]
    assert server.post("/reward", json={"completions": chat, "references": body["labels"]}).json() == reply


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("P adds two lists", " adds two lists"),
        ("P adds </s> lists</s></s> \n<pad><pad>", " adds </s> lists"),
        ("P List<String> of a <b>", " List<String> of a <b>"),
        ("P a<\uff5cend\u2581of\u2581sentence\uff5c>", " a"),
        ("P", ""),
        ("P<eos>", ""),
    ],
)
def test_special_tokens_are_removed_at_the_end_of_a_completion(query, text):
    assert text_after("P", query) == text


def test_long_runs_of_spaces_and_special_tokens_take_linear_time():
    assert text_after("P", "P" + " " * 2_000_000 + "x" + " <pad>" * 300_000).strip() == "x"


def test_a_server_that_loads_its_model_or_has_too_many_waiting_pairs_says_when_to_come_again(metric):
    batcher = Batcher(lambda: metric, Limits(max_pairs=4, max_waiting=6, timeout=0.05))
    visitor = client(batcher)
    answer = visitor.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "loading", "signature": None})
    answer = visitor.post("/score", json={"pairs": [PAIR]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json() == {"error": "the model is being loaded"}
    batcher.metric = metric  # but no thread that scores
    assert visitor.get("/health").json() == {"status": "ready", "signature": metric.signature}
    result = batcher.submit([Example("a", "b")] * 4, "reference")
    answer = visitor.post("/score", json={"pairs": [PAIR] * 3})
    assert (answer.status_code, answer.json()) == (503, {"error": "4 pairs are waiting already"})
    assert int(answer.headers["Retry-After"]) >= 1
    answer = visitor.post("/score", json={"pairs": [PAIR] * 2})
    assert (answer.status_code, answer.json()) == (503, {"error": "not scored within 0.05 seconds"})
    # The thread leaves out the request for which nobody waits any more.
    batcher.start(lambda: None)
    assert len(result.result(60).values) == 4
    batcher.end()
    assert batcher.measured.registry.get_sample_value("simllm_batch_pairs_sum") == 4
    batcher.stopping = True
    answer = visitor.get("/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "stopping")
    assert answer.headers["Connection"] == "close"


def call(app, messages, path="/score"):
    """Send ASGI messages to an application, and return its answer; after the last message, nothing comes."""
    sent, left = [], list(messages)

    async def receive():
        if left:
            return left.pop(0)
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"",
        "raw_path": path.encode(), "root_path": "", "scheme": "http", "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_nothing_is_scored_for_a_client_that_went_away(metric):
    batcher = Batcher(lambda: metric, Limits())
    batcher.metric = metric
    body = {"type": "http.request", "body": json.dumps({"pairs": [PAIR]}).encode()}
    status, _ = call(Service(batcher).app, [body, {"type": "http.disconnect"}])
    assert status == 499
    batcher.start(lambda: None)
    batcher.end()
    assert batcher.measured.registry.get_sample_value("simllm_batch_pairs_count") == 0


def test_a_body_that_does_not_arrive_is_refused(metric):
    batcher = Batcher(lambda: metric, Limits(timeout=0.05))
    status, reply = call(
        Service(batcher).app, [{"type": "http.request", "body": b'{"pairs"', "more_body": True}]
    )
    assert (status, reply) == (408, {"error": "the body did not arrive within 0.05 seconds"})


class FailingMetric(SimLLM):
    """A metric with a defect."""

    def score_groups(self, groups, against="reference"):
        if any(example.candidate == "defect" for group in groups for example in group):
            raise ZeroDivisionError
        return super().score_groups(groups, against)


def test_a_defect_is_an_answer_and_the_server_goes_on(head_folder):
    batcher = started(lambda: FailingMetric(head_folder))
    visitor = client(batcher)
    answer = visitor.post("/score", json={"pairs": [{"candidate": "defect", "reference": "a"}]})
    assert (answer.status_code, list(answer.json())) == (500, ["error"])
    assert "Traceback" not in answer.text
    assert visitor.post("/score", json={"pairs": [PAIR]}).status_code == 200
    batcher.end()


TOKEN = "0123456789abcdef-token"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": "Basic ####"}, 401),
        ({"Authorization": "Bearer caf\u00e9".encode("latin-1")}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"bearer  {TOKEN}", "Host": "scores.example"}, 200),
    ],
)
def test_a_token_is_needed_for_everything_but_health_and_description(metric, headers, status):
    batcher = Batcher(lambda: metric, Limits())
    visitor = client(batcher, TOKEN)
    answer = visitor.get("/metrics", headers=headers)
    assert answer.status_code == status
    assert TOKEN not in answer.text
    if status == 401:
        assert "Bearer" in answer.headers["WWW-Authenticate"]
        assert visitor.post("/score", json={"pairs": [PAIR]}, headers=headers).status_code == 401
    assert [visitor.get(path).status_code for path in ("/docs", "/openapi.json")] == [200, 200]
    assert visitor.get("/health").status_code == 503


def test_a_token_as_the_password_in_an_address(metric):
    batcher = Batcher(lambda: metric, Limits())
    visitor = TestClient(Service(batcher, TOKEN).app, base_url=f"http://trainer:{TOKEN}@127.0.0.1:8644")
    assert visitor.get("/metrics").status_code == 200


def test_metrics_are_what_prometheus_reads(server):
    server.post("/score", json={"pairs": [PAIR]})
    server.get("/no/such/address")
    answer = server.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    paths = {sample.labels["path"] for sample in families["simllm_requests"].samples}
    assert {"/score", "other"} <= paths <= {"/score", "/reward", "/health", "/metrics", "/docs", "other"}
    assert families["simllm_model_info"].samples[0].labels["signature"].startswith("model:")
    for name in ("simllm_batch_pairs", "simllm_batch_seconds", "simllm_request_seconds", "simllm_pairs"):
        assert families[name].samples


def test_the_page_of_the_addresses_needs_no_other_server(server):
    page = server.get("/docs").text
    assert not re.findall(r"(?:https?:)?//\w", page)
    assert "<script" not in page
    described = server.get("/openapi.json").json()
    for path in described["paths"]:
        assert path in page
    assert set(described["paths"]) == {"/score", "/reward", "/health", "/metrics"}
    for name in ("candidate", "against", "completions", "labels", "fits"):
        assert f"<code>{name}</code>" in page


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_pairs": 0}, "max_pairs 0: expected a number above 0"),
        ({"timeout": float("nan")}, "timeout nan: expected a number above 0"),
        ({"max_waiting": 5}, "max_waiting must be at least max_pairs, which one request may have"),
    ],
)
def test_limits_are_checked(limits, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        Limits(**limits)


def test_a_model_that_cannot_be_loaded_is_no_ready_server(tmp_path):
    batcher, loaded = Batcher(lambda: SimLLM(tmp_path / "nowhere"), Limits()), threading.Event()
    batcher.start(loaded.set)
    assert loaded.wait(60)
    assert isinstance(batcher.failure, InputError)
    with pytest.raises(BusyError):
        batcher.submit([Example("a", "b")], "reference")
    batcher.end()


class SlowMetric(SimLLM):
    """A metric whose scoring lasts until nobody waits for it, or until the test ends it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.begun, self.ended = threading.Event(), threading.Event()

    def score_groups(self, groups, against="reference"):
        found = super().score_groups(groups, against)
        if any(example.candidate == "slow" for group in groups for example in group):
            self.begun.set()
            while not self.ended.wait(0.01):  # as many batches as a text of very many clauses has
                super().score_groups(groups, against)
        return found


def test_a_request_that_runs_out_of_time_stops_being_scored(head_folder):
    metric = SlowMetric(head_folder)
    batcher = started(lambda: metric, Limits(timeout=0.5))
    visitor = client(batcher)
    try:
        answer = visitor.post("/score", json={"pairs": [{"candidate": "slow", "reference": "slower"}]})
        assert (answer.status_code, metric.begun.is_set()) == (503, True)
        # The only thread that scores is free again.
        result = batcher.submit([Example("gets the name", "returns the name")], "reference")
        assert len(result.result(30).values) == 1
    finally:
        metric.ended.set()
        batcher.end()


def test_the_end_does_not_wait_for_a_thread_that_does_not_end(head_folder):
    metric, loading, goes_on = SimLLM(head_folder), threading.Event(), threading.Event()

    def load():
        loading.set()
        goes_on.wait(60)
        return metric

    batcher, loaded = Batcher(load, Limits()), threading.Event()
    batcher.start(loaded.set)
    assert loading.wait(60)
    batcher.end(0.01)
    assert not loaded.is_set()
    goes_on.set()
    batcher.end()
    assert loaded.is_set()


def test_the_characters_of_waiting_requests_are_limited(metric):
    batcher = Batcher(lambda: metric, Limits(max_body=100))
    batcher.metric = metric  # but no thread that scores
    for _ in range(16):
        result = batcher.submit([Example("a" * 40, "b" * 40, "c" * 16, "java")], "both")
    with pytest.raises(BusyError, match=r"^1,600 characters are waiting already$"):
        batcher.submit([Example("a", "b")], "reference")
    result.cancel()
    batcher.start(lambda: None)
    batcher.end()
    assert batcher.measured.registry.get_sample_value("simllm_batch_pairs_sum") == 15


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/score", {"pairs": [3] * 100_000}, "pairs[0]: expected an object"),
        ("/reward", {"completions": [3] * 100_000, "references": ["a"]},
         "completions[0]: expected a text, or a list of chat messages with texts"),
        ("/reward", {"completions": ["a"], "references": [3] * 100_000}, "references[0]: expected a text"),
        ("/score", {"pairs": [PAIR | {f"x{i}": 1 for i in range(100_000)}]},
         "pairs[0]: expected at most 16 keys, not 100,002"),
        ("/score", {f"x{i}": 1 for i in range(100_000)}, "the body: expected at most 16 keys, not 100,000"),
    ],
)  # fmt: skip
def test_a_body_with_many_mistakes_is_refused_for_the_first(server, path, body, message):
    answer = server.post(path, json=body)
    assert (answer.status_code, answer.json()) == (422, {"error": message})


@pytest.mark.parametrize(
    ("host", "named", "status"),
    [
        ("127.0.0.2", "127.0.0.2:8644", 200),
        ("127.0.0.2", "localhost:8644", 200),
        ("127.0.0.2", "127.0.0.3:8644", 403),
        ("MyMachine", "mymachine", 200),
        ("::1", "[::1]:8644", 200),
        ("127.0.0.1", "127.0.0.2:8644", 403),
        ("mymachine", "mymachine:8644.attacker.example", 403),
    ],
)
def test_a_server_answers_to_the_host_that_it_was_given(metric, host, named, status):
    visitor = TestClient(Service(Batcher(lambda: metric, Limits()), None, host).app)
    answer = visitor.get("/docs", headers={"Host": named})
    assert answer.status_code == status
    if host == "127.0.0.2" and status == 403:
        names = "127.0.0.2, 127.0.0.1 or localhost"
        expected = f"Host: expected {names}; a server with a token answers to any name"
        assert answer.json() == {"error": expected}


async def listening(batcher, listener):
    """Start a server on a listening socket, in the event loop of the caller."""
    config = uvicorn.Config(Service(batcher).app, http="h11", lifespan="off", log_config=None)
    config.load()
    server = _Server(config, batcher, lambda message: None)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listener])
    return server


def test_half_a_body_does_not_hold_up_the_end(metric, monkeypatch):
    monkeypatch.setattr(transport, "_LAST_BODIES", 0.1)
    batcher = Batcher(lambda: metric, Limits(timeout=600))
    head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    async def end_with_half_a_body(listener):
        server = await listening(batcher, listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(head + b"Content-Length: 100\r\n\r\n{")
        while not batcher.bodies:  # the rest of the body is awaited
            await asyncio.sleep(0)
        await asyncio.wait_for(server.shutdown([listener]), 60)
        answer = await reader.read()
        writer.close()
        return answer

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = asyncio.run(end_with_half_a_body(listener))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"the server is stopping, and the body did not arrive" in answer
    assert not batcher.bodies


def test_a_connection_that_the_kernel_has_made_is_answered_at_the_end(metric):
    batcher = Batcher(lambda: metric, Limits())

    async def end_with_a_new_connection(listener):
        server = await listening(batcher, listener)
        await asyncio.sleep(0.01)
        # The event loop knows nothing of this connection before the end begins.
        with socket.create_connection(listener.getsockname(), timeout=30) as visitor:
            visitor.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await server.shutdown([listener])
            return visitor.recv(1 << 16)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert asyncio.run(end_with_a_new_connection(listener)).startswith(b"HTTP/1.1 503 ")


def test_the_description_says_that_completions_may_be_chats(server):
    schema = server.get("/openapi.json").json()["components"]["schemas"]["RewardRequest"]
    items = schema["properties"]["completions"]["anyOf"][0]["items"]["anyOf"]
    assert [item["type"] for item in items] == ["string", "array"]
    assert items[1]["items"]["type"] == "object"
    assert "list of strings" in server.get("/docs").text
