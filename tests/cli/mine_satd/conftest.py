"""A git history to mine, a server for the judge, and items of others."""

import json

import pytest

from tests.chat_server import chat_server
from tests.cli.mine_satd.repayments import CHANGES, THEIRS
from tests.histories import make_history


@pytest.fixture
def rules(tmp_path):
    """Make a git history of commits that fulfil all rules for repayments, and commits that break a rule."""
    before = {path: code for path, (code, _) in CHANGES.items()}
    return make_history(
        tmp_path / "all" / "rules", before, *({path: new} for path, (_, new) in CHANGES.items())
    )


@pytest.fixture
def server():
    with chat_server() as server:
        yield server


@pytest.fixture
def theirs(tmp_path):
    file = tmp_path / "theirs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in THEIRS))
    return file
