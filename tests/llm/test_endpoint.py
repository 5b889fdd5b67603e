"""The client of an endpoint: retries, refusals, lost replies and keys."""

import json
import threading
import time

import pytest

from simllm.errors import InputError
from simllm.llm.endpoint import ChatClient, LostReplyError, make_request, parse_reply, request_key

REQUEST = make_request("M", [{"role": "user", "content": "caf\u00e9"}])


@pytest.fixture
def client(server):
    client = ChatClient(f"{server.url}/v1", retries=2)
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
        ((200, {}, b"<html>"), "does not answer as /chat/completions should"),
        ((200, {}, b'{"choices": []}'), "does not answer as /chat/completions should"),
        ((200, {}, b'{"choices": [{"message": {"content": 1}}]}'), "does not answer with a text"),
    ],
)
def test_lost_replies(server, client, reply, message):
    answers(server, reply)
    with pytest.raises(LostReplyError, match=message):
        parse_reply(client.ask(REQUEST))
    assert len(server.requests) == 1


def test_a_server_that_stays_broken(server):
    server.reply = lambda body: error(500, "no memory")
    with pytest.raises(LostReplyError, match="no memory"):
        ChatClient(f"{server.url}/v1", retries=0).ask(REQUEST)


def test_a_server_that_cannot_be_reached_is_not_asked_again():
    message = "http://127.0.0.1:9/v1: no server can be reached: .*connection attempts failed"
    with pytest.raises(InputError, match=message):
        ChatClient("http://127.0.0.1:9/v1").ask(REQUEST)


@pytest.mark.parametrize("status", [401, 403, 404])
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
    client, lost = ChatClient(f"{server.url}/v1"), []

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
        ChatClient("http://127.0.0.1:9/v1")
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "expected --base-url URL, or OPENAI_BASE_URL"),
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
        ChatClient(url)


def test_address_of_the_environment(monkeypatch, server):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    assert ChatClient(None).ask(REQUEST).status == 200


def test_key_of_a_request_does_not_depend_on_the_order_of_its_keys():
    assert request_key(dict(reversed(REQUEST.items()))) == request_key(REQUEST)
    assert request_key(REQUEST) != request_key(REQUEST | {"model": "N"})
