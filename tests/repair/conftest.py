"""Fixtures for the tests of repair."""

import json

import pytest

from tests.chat_server import chat_server
from tests.execution.conftest import sandbox  # noqa: F401 (a fixture)


@pytest.fixture(scope="session")
def vectors(shared):
    """Return a function that reads a file of reference results by its name."""
    return lambda name: json.loads((shared / "reference" / f"repair_{name}.json").read_text())


@pytest.fixture
def server(monkeypatch):
    """Run a local endpoint; its function `reply` gets the whole body of each request."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-123456")
    with chat_server() as server:
        server.whole = True
        yield server


@pytest.fixture
def write_items(tmp_path):
    """Return a function that writes items as JSON lines."""

    def write(*rows, name="items.jsonl"):
        file = tmp_path / name
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    return write
