"""The client of an endpoint: retries, refusals, lost replies and keys."""

import base64
import contextlib
import gzip
import json
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from simllm.errors import InputError
from simllm.llm import endpoint
from simllm.llm.endpoint import (
    EndpointClient,
    LostReplyError,
    RefusedRequestError,
    redact_message,
)
from simllm.llm.model import Model, content_hash
from simllm.llm.reply import parse_reply
from tests.chat_server import chat_server

REQUEST = Model(model="M", temperature=1, top_p=1).request("caf\u00e9")


@pytest.fixture
def client(server):
    client = EndpointClient(f"{server.url}/v1", retries=2)
    yield client
    client.close()


def answers(server, *replies):
    """Let the server give these replies, and then the text "done"."""
    queue = list(replies)
    server.reply = lambda body: queue.pop(0) if queue else "done"


def error(status, message, code=None, **headers):
    return status, headers, json.dumps({"error": {"message": message, "code": code}}).encode()


def test_request_and_reply(server, client):
    answers(server)
    reply = parse_reply(client.ask(REQUEST))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("done", 10, 7)
    [(path, headers, body)] = server.requests
    assert path == "/v1/chat/completions"
    assert {name.lower(): value for name, value in headers.items()}[
        "authorization"
    ] == "Bearer sk-canary-123456"
    assert body == REQUEST == {
        "model": "M", "messages": [{"role": "user", "content": "caf\u00e9"}], "temperature": 1, "top_p": 1
    }  # fmt: skip


def test_retries_after_errors_and_cut_connections(server, client):
    answers(server, error(429, "slow down", **{"Retry-After": "0.1"}), None)
    assert parse_reply(client.ask(REQUEST)).text == "done"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (error(400, "unknown field"), "unknown field"),
        ((200, {}, b'{"choices": [{"delta": {"content": "x"}}]}'), "does not answer as"),
        ((200, {}, b'{"choices": [{"message": {"content": 1}}]}'), "does not answer with a text"),
    ],
)
def test_lost_replies(server, client, reply, message):
    answers(server, reply)
    with pytest.raises(LostReplyError, match=message):
        parse_reply(client.ask(REQUEST))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", [b"<html>", b'{"choices": []}', b"", b"data: {}\n\n", b'{"error": {"message": "overloaded"}}']
)
def test_a_reply_that_no_model_wrote_is_asked_for_again(server, client, body):
    """Gateways send pages and errors with status 200."""
    answers(server, (200, {}, body))
    assert parse_reply(client.ask(REQUEST)).text == "done"
    assert len(server.requests) == 2
    server.reply = lambda _: (200, {}, body)
    with pytest.raises(LostReplyError, match="does not answer as .*" + "overloaded" * (b"error" in body)):
        EndpointClient(f"{server.url}/v1", retries=0).ask(REQUEST)


def test_a_byte_order_mark_is_no_part_of_a_reply(server, client):
    answers(server, (200, {}, b"\xef\xbb\xbf" + chat_body("marked")))
    assert parse_reply(client.ask(REQUEST)).text == "marked"


def test_moderation_concerns_one_request(server, client):
    answers(server, error(403, "your input was flagged: model requires moderation"))
    with pytest.raises(RefusedRequestError, match="flagged"):
        client.ask(REQUEST)


def test_a_server_that_stays_broken(server):
    server.reply = lambda body: error(500, "no memory")
    with pytest.raises(LostReplyError, match="no memory"):
        EndpointClient(f"{server.url}/v1", retries=0).ask(REQUEST)


def test_a_server_that_cannot_be_reached_is_not_asked_again():
    message = "^http://127.0.0.1:9/v1: no server can be reached: .*Connection refused"
    with pytest.raises(InputError, match=message):
        EndpointClient("http://127.0.0.1:9/v1").ask(REQUEST)


def test_secrets_in_the_path_of_an_address_are_not_shown():
    with pytest.raises(InputError, match=r"^http://127.0.0.1:9/[^a-z/]/v1: no server can be reached"):
        EndpointClient("http://127.0.0.1:9/canary123456789abc/v1").reach()


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405])
def test_refusals(server, client, status):
    answers(server, error(status, "no access"))
    with pytest.raises(InputError, match=r"the endpoint refuses: .*no access"):
        client.ask(REQUEST)


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "too long", "context_length_exceeded"),
        (400, "This model's maximum context length is 4096 tokens", None),
        (400, "the request exceeds the available context size", None),
        (413, "prompt is too long", None),
    ],
)
def test_context_overflow_is_a_reply_without_text(server, client, status, message, code):
    answers(server, error(status, message, code))
    raw = client.ask(REQUEST)
    assert raw.status == status
    assert parse_reply(raw).text is None


def test_empty_reply_and_unknown_tokens(server, client):
    content = {"choices": [{"message": {"content": None}}], "usage": {"prompt_tokens": "3"}}
    answers(server, (200, {}, json.dumps(content).encode()))
    reply = parse_reply(client.ask(REQUEST))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("", None, None)


def test_parts_of_a_reply_and_impossible_tokens(server, client):
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    content = {"choices": [{"message": {"content": parts}}], "usage": {"prompt_tokens": 10**400}}
    answers(server, (200, {}, json.dumps(content).encode()))
    reply = parse_reply(client.ask(REQUEST))
    assert (reply.text, reply.prompt_tokens) == ("ab", None)


def test_key_is_removed_from_replies_and_errors(server, client):
    answers(server, "your key is sk-canary-123456", error(400, "bad key sk-canary-123456"))
    assert "canary" not in client.ask(REQUEST).body
    with pytest.raises(LostReplyError) as lost:
        client.ask(REQUEST)
    assert "canary" not in str(lost.value)


@pytest.mark.parametrize("wait", [0.0, 0.3])
def test_a_closed_client_ends_requests_under_way(server, wait):
    """Ctrl+C closes the client at once, even if the model thinks for minutes or the server asks to wait."""
    server.delay = 3
    client, lost = EndpointClient(f"{server.url}/v1"), []

    def ask():
        try:
            client.ask(REQUEST)
        except LostReplyError as error:
            lost.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(wait)
    begun = time.monotonic()
    client.close()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun < 1
    ask()
    client.close()
    assert lost == ["the run has stopped"] * 4


@pytest.mark.parametrize("key", ["sk-canary\nX: y", "sk-canary-\u00e9", "sk canary"])
def test_a_key_that_cannot_be_sent_is_refused(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InputError, match=r"^OPENAI_API_KEY: expected a key of") as refused:
        EndpointClient("http://127.0.0.1:9/v1")
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "expected base_url URL, or OPENAI_BASE_URL"),
        ("localhost:8000", "localhost:8000: expected an address such as http://localhost:8000/v1"),
        ("ftp://host/v1", "expected an address"),
        ("http://[", "expected an address"),
        ("http://user:pass@host/v1", "^the address of the endpoint has a secret in it"),
        ("http://host/v1?key=abc", "^the address of the endpoint has a secret in it"),
        ("http://host/v1#abc", "^the address of the endpoint has a secret in it"),
    ],
)
def test_wrong_addresses(monkeypatch, url, message):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match=message):
        EndpointClient(url)


def test_address_of_the_environment(monkeypatch, server):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    assert EndpointClient(None).ask(REQUEST).status == 200


def test_key_of_a_request_does_not_depend_on_the_order_of_its_keys():
    assert content_hash(dict(reversed(REQUEST.items()))) == content_hash(REQUEST)
    assert content_hash(REQUEST) != content_hash(REQUEST | {"model": "N"})


def chat_body(text):
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


def test_large_replies_are_refused_before_they_are_read(server, client, monkeypatch):
    monkeypatch.setattr(endpoint, "LARGEST_REPLY", 1 << 20)
    large = chat_body("a" * (1 << 20))
    bomb = gzip.compress(b"0" * (1 << 28))  # 256 MiB in 256 KiB
    answers(
        server, (200, {}, large), (200, {"Content-Encoding": "gzip"}, bomb), (200, {}, chat_body("small"))
    )
    for _ in range(2):
        with pytest.raises(RefusedRequestError, match=r"^a reply of more than 1 MiB$"):
            client.ask(REQUEST)
    assert parse_reply(client.ask(REQUEST)).text == "small"
    assert len(server.requests) == 3


def test_long_errors_are_read_only_in_part(server, client):
    answers(server, (400, {}, b"no " * (1 << 22)))
    with pytest.raises(RefusedRequestError) as refused:
        client.ask(REQUEST)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("headers", "pack"),
    [
        ({"Content-Type": "application/json; charset=rot13"}, bytes),
        ({"Content-Type": "application/json; charset=unicode_escape"}, bytes),
        ({"Content-Type": "text/plain; charset=latin-1"}, bytes),
        ({"Content-Encoding": "gzip"}, gzip.compress),
    ],
)
def test_replies_are_utf8_whatever_the_headers_say(server, client, headers, pack):
    answers(server, (200, headers, pack('{"choices": [{"message": {"content": "caf\u00e9"}}]}'.encode())))
    assert parse_reply(client.ask(REQUEST)).text == "caf\u00e9"


def test_unknown_encodings_are_refused(server, client):
    answers(server, (200, {"Content-Encoding": "br"}, b"?"))
    with pytest.raises(RefusedRequestError, match="in the encoding br"):
        client.ask(REQUEST)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_to_another_server_are_refused(server, client, status):
    """The other server gets neither the texts nor the key."""
    with chat_server() as other:
        answers(server, (status, {"Location": f"{other.url}/v1/chat/completions"}, b""))
        with pytest.raises(InputError, match=f"redirects to {other.url}; refused"):
            client.ask(REQUEST)
        assert not other.requests


def test_redirects_from_https_to_http_are_refused():
    client = EndpointClient("https://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="refused"):
        client._redirected("/v1/chat/completions", "http://127.0.0.1:9/v1/chat/completions")
    with pytest.raises(InputError, match="refused"):
        client._redirected("/v1/chat/completions", "//[")


def test_redirects_to_the_same_server_are_followed(server, client):
    answers(server, (308, {"Location": "/new?a=b"}, b""))
    assert parse_reply(client.ask(REQUEST)).text == "done"
    assert [(path, body) for path, _, body in server.requests] == [
        ("/v1/chat/completions", REQUEST), ("/new?a=b", REQUEST)
    ]  # fmt: skip
    server.reply = lambda body: (307, {"Location": "/again"}, b"")
    with pytest.raises(RefusedRequestError, match="redirects too often"):
        client.ask(REQUEST)


SOON = datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7), ("0.5", 0.5), ("-3", 9), ("0", 9), ("1e9", 600), ("nan", 9), ("inf", 9),
        ("soon", 9), ("", 9),
        pytest.param(format_datetime(SOON), 600, id="in an hour"),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 9), ("Wed, 99 Oct 2015", 9),
    ],
)  # fmt: skip
def test_seconds_of_retry_after(value, seconds):
    assert endpoint._retry_after({"Retry-After": value}, 9) == pytest.approx(seconds, abs=0.01)


def test_a_limited_rate_makes_all_threads_wait(server, client):
    """The first request is told to wait; requests of other threads wait, too, and none is lost."""
    answers(server, error(429, "slow down", **{"Retry-After": "0.4"}))
    times = []
    server.reply, replies = (lambda body: times.append(time.monotonic()) or replies(body)), server.reply
    first = threading.Thread(target=client.ask, args=(REQUEST,))
    first.start()
    while not times or client._pause_ends == 0:
        time.sleep(0.001)
    client.ask(REQUEST)
    first.join()
    assert len(times) == 3
    assert min(times[1:]) - times[0] > 0.39


def test_retries_have_an_end(server, client):
    server.reply = lambda body: error(429, "slow down", **{"Retry-After": "0.01"})
    with pytest.raises(LostReplyError, match=r"^HTTP status 429: slow down$"):
        client.ask(REQUEST)
    assert len(server.requests) == 3


def test_a_short_body_is_a_cut_connection(server, client):
    answers(server, (200, {"Content-Length": "500"}, chat_body("half")))
    assert parse_reply(client.ask(REQUEST)).text == "done"


def test_a_server_that_takes_too_long_is_cut(server, monkeypatch):
    monkeypatch.setattr(endpoint, "_LONGEST", 0.5)
    server.delay = 30
    client = EndpointClient(f"{server.url}/v1")
    with pytest.raises(LostReplyError, match="no whole reply came"):
        client.ask(REQUEST)
    client.close()


def test_idle_connections_are_reused_and_replaced(server, client):
    answers(server)
    for headers in ({}, {}, {"Connection": "close"}, {}):
        server.reply = lambda body, headers=headers: (200, headers, chat_body("ok"))
        assert parse_reply(client.ask(REQUEST)).text == "ok"


KEY = 'sk-canary/+"1234'


@pytest.mark.parametrize(
    "echo",
    [
        KEY, KEY.upper(), json.dumps(KEY), "sk-canary%2F%2B%221234", base64.b64encode(KEY.encode()).decode(),
        f"Bearer {KEY}", "Incorrect API key provided: sk-canar*****1234", "http://user:canary@host/",
        "https://host/v1?api_key=canary&x=1", "Authorization: Bearer canary", f"a{KEY}b",
    ],
)  # fmt: skip
def test_no_form_of_a_secret_is_shown(monkeypatch, echo):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with chat_server() as server:
        answers(server, error(422, f"no: {echo}"), error(401, f"no: {echo}"), error(500, f"no: {echo}"))
        server.whole = True
        client = EndpointClient(f"{server.url}/canary/v1", retries=0)
        for kind in (RefusedRequestError, InputError, LostReplyError):
            with pytest.raises(kind, match="no: ") as failed:
                client.ask(REQUEST)
            assert "canar" not in str(failed.value).lower()
            assert base64.b64encode(KEY.encode()).decode()[:10] not in str(failed.value)
        client.close()


def test_short_keys_are_hidden_in_messages_but_not_in_replies(monkeypatch, server):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    client = EndpointClient(f"{server.url}/v1")
    answers(server, "int x = 1;", error(401, "the key x is wrong"))
    assert parse_reply(client.ask(REQUEST)).text == "int x = 1;"
    with pytest.raises(InputError, match=r"the key \[API key\] is wrong"):
        client.ask(REQUEST)
    client.close()


def test_messages_are_one_line_without_control_characters():
    assert redact_message("a\n\x1b[31mb\u202ec", "") == "a [31mb c"


def test_a_proxy_of_the_environment_is_used(monkeypatch, server):
    monkeypatch.setenv("http_proxy", f"http://user:pass@{server.url.removeprefix('http://')}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    answers(server)
    client = EndpointClient("http://model.invalid/v1")
    assert parse_reply(client.ask(REQUEST)).text == "done"
    [(path, headers, _)] = server.requests
    assert path == "http://model.invalid/v1/chat/completions"
    assert headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNz"
    client.close()
    monkeypatch.setenv("http_proxy", "socks5://user:pass@host:1")
    with pytest.raises(InputError, match=r"expected http://HOST:PORT$"):
        EndpointClient("http://model.invalid/v1")


@pytest.mark.slow
def test_a_proxy_that_sends_a_byte_now_and_then_is_given_up(monkeypatch):
    monkeypatch.setattr(endpoint, "_CONNECTION", 2.0)
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def trickle():
            with proxy.accept()[0] as connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 ")
                while not stopped.wait(0.2):
                    connection.sendall(b"x")

        thread = threading.Thread(target=trickle)
        thread.start()
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        client = EndpointClient("https://model.invalid/v1")
        try:
            with pytest.raises(InputError, match="no server can be reached"):
                client.ask(REQUEST)
        finally:
            stopped.set()
            thread.join()
            client.close()
