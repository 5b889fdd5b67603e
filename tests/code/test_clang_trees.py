"""The trees of libclang, against the figures of CREF's published code."""

import json

import pytest

from simllm.code.clang_trees import clang_tree
from simllm.code.reply import code_of_reply
from simllm.metrics.code.trees import clang_patch_size

pytest.importorskip("clang")


@pytest.mark.slow
def test_trees_of_the_published_code(shared):
    folder = shared / "reference"
    published = json.loads((folder / "repair_sessions.json").read_text())["libclang trees"]
    data = json.loads((folder / "repair_items.json").read_text())
    for item in data["items"]:
        for name, expected in published.get(item["id"], {}).items():
            reply = data["replies"][item["id"]].get(name)
            code = code_of_reply(reply, "cpp", is_program=True, source=item["code"]).text if reply else ""
            size = clang_patch_size(item["code"], code)
            nodes = expected["nodes of the incorrect code"]
            assert size is not None
            assert (size.edits, size.nodes) == (expected["distance"], nodes), (item["id"], name)
            assert size.larger == max(nodes, expected["nodes"])


@pytest.mark.parametrize("code", ["", "#include <cstddef>", "int x;", "}{", "\0", '#include "/dev/null"'])
def test_unusual_code_has_a_tree(code):
    tree = clang_tree(code, "a.cpp")
    assert tree is not None
    assert len(tree) >= 1


def test_code_that_ends_libclang_has_no_tree():
    assert clang_tree('#include "/dev/zero"\n', "a.cpp") is None
