"""Fixtures for the tests of repair."""

import json

import pytest

from tests.chat_server import chat_server


@pytest.fixture(scope="session")
def vectors(shared):
    """Return a function that reads reference vectors by name."""
    return lambda name: json.loads((shared / "reference" / f"repair_{name}.json").read_text())


@pytest.fixture
def server():
    with chat_server() as server:
        server.whole = True
        yield server
