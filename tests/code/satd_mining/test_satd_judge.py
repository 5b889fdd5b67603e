"""Questions to an OpenAI-compatible endpoint, and its failures."""

import json
import re

import pytest

from simllm.code.satd_mining.satd_judge import ChatEndpoint
from simllm.errors import InputError
from tests.chat_server import chat_server


@pytest.fixture(scope="module")
def server():
    with chat_server() as server:
        yield server


def test_question_and_answer(server):
    server.requests.clear()
    server.reply = lambda prompt: f"About {prompt}: caf\u00e9."
    assert ChatEndpoint(server.url, "judge-1", "secret").ask("it") == "About it: caf\u00e9."
    [(path, headers, body)] = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert body == {
        "model": "judge-1", "temperature": 0, "messages": [{"role": "user", "content": "it"}]
    }  # fmt: skip


def test_without_model_and_key(server):
    server.requests.clear()
    ChatEndpoint(server.url).ask("it")
    [(_, headers, body)] = server.requests
    assert "Authorization" not in headers
    assert "model" not in body


@pytest.mark.parametrize("end", ["/", "/v1", "/v1/", "/v1/chat/completions"])
def test_longer_addresses(server, end):
    server.requests.clear()
    ChatEndpoint(server.url + end).ask("it")
    assert server.requests[0][0] == "/v1/chat/completions"


def answer(content):
    return 200, {}, json.dumps({"choices": [{"message": {"content": content}}]}).encode()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((500, {}, b"no memory"), "500 Internal Server Error no memory"),
        ((401, {}, b""), "401 Unauthorized"),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "302 Found"),
        ((200, {}, b"<html>"), "does not answer as /v1/chat/completions should"),
        ((200, {}, b"\xff"), "does not answer as /v1/chat/completions should"),
        ((200, {}, b"[]"), "does not answer as /v1/chat/completions should"),
        ((200, {}, b'{"choices": []}'), "does not answer as /v1/chat/completions should"),
        (answer(None), "does not answer with a text"),
        ((200, {"Content-Length": "99"}, b"{"), "does not answer as /v1/chat/completions should"),
    ],
)
def test_failures_are_one_line(server, reply, message):
    server.reply = lambda prompt: reply
    with pytest.raises(InputError, match=re.escape(f"{server.url}: {message}") + "$"):
        ChatEndpoint(server.url).ask("it")


def test_server_that_is_not_there():
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9: gives no answer \(.*refused\)"):
        ChatEndpoint("http://127.0.0.1:9").ask("it")


def test_key_that_cannot_be_sent(server):
    with pytest.raises(InputError, match=r"gives no answer \(Invalid header value"):
        ChatEndpoint(server.url, key="a\nb").ask("it")


@pytest.mark.parametrize("url", ["localhost:8000", "file:///etc/passwd", "ftp://host", ""])
def test_other_addresses_are_refused(url):
    with pytest.raises(InputError, match="expected an address such as http://localhost:8000"):
        ChatEndpoint(url)


def test_key_is_not_shown():
    assert "secret" not in repr(ChatEndpoint("http://host", key="secret"))
