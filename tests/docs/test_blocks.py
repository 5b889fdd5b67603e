"""The commands and code blocks of the README and the documentation work and print the shown output."""

import pytest

from tests.conftest import ROOT
from tests.docs.markdown_blocks import PAGES, Session, blocks, commands, parse, same

FOUND = {str(page.relative_to(ROOT)): blocks(page) for page in PAGES}
WITH_BLOCKS = [name for name, found in FOUND.items() if found]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_blocks(page, tmp_path):
    session = Session(tmp_path)
    for block in FOUND[page]:
        if not block.run:
            assert block.language == "sh", f"{block}: a Python block that is not run"
            for command in commands(block.code):
                parse(command)
        elif not block.missing:
            printed = session.run(block)
            if block.expected is not None:
                assert same(block.expected, printed), (
                    f"{block} prints:\n{printed}\ninstead of:\n{block.expected}"
                )


def test_blocks_that_are_not_run_give_a_reason():
    known = [f"needs {name}" for name in ("bwrap", "evaluate", "libclang", "torchmetrics")]
    for found in FOUND.values():
        for block in found:
            for note in block.notes:
                assert note in known or note.startswith(("exit ", "not run, ")), f"{block}: {note}"


@pytest.mark.parametrize(
    ("expected", "printed", "alike"),
    [
        ("score 0.5386", "score 0.5387", True),
        ("score 0.5386", "score 0.5389", False),
        ("a\n…\nz", "a\nb\nc\nz\n", True),
        ("a\n…\nz", "a\nb\n", False),
        ("version:0.1.0", "version:0.2.0", True),
        ("1,433 ratings", "1,434 ratings", True),
        ("2.2e-07", "2.3e-07", True),
        ("adds two", "adds three", False),
        ("[0.5 0.]", "[0.5 0.8]", False),
        ("[1. 0.]", "[1. 0.1]", True),
        ("It has 3.", "It has 4.", True),
    ],
)
def test_outputs_may_differ_in_the_last_digit_only(expected, printed, alike):
    assert same(expected, printed) == alike
