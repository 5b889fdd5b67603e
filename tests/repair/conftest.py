"""Fixtures for the tests of repair."""

import json

import pytest

from tests.execution.conftest import sandbox  # noqa: F401 (a fixture)
from tests.llm.conftest import server  # noqa: F401 (a fixture)


@pytest.fixture(scope="session")
def vectors(shared):
    """Return a function that reads a file of reference results by its name."""
    return lambda name: json.loads((shared / "reference" / f"repair_{name}.json").read_text())


@pytest.fixture
def write_items(tmp_path):
    """Return a function that writes items as JSON lines."""

    def write(*rows, name="items.jsonl"):
        file = tmp_path / name
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    return write
