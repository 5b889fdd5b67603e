"""Fixtures for the tests of language models."""

import pytest

from tests.chat_server import chat_server


@pytest.fixture
def server(monkeypatch):
    """Run a local endpoint; its function `reply` gets the whole body of each request."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-123456")
    with chat_server() as server:
        server.whole = True
        yield server
