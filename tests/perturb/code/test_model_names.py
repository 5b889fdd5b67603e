"""Names that a language model proposes: read, checked, counted, recorded, and replaced by others."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.cli.main import main
from simllm.perturb.code import rewrite
from simllm.perturb.code.model_names import usable_names
from tests.chat_server import chat_server

SOURCE = "def total(n, xs):\n    s = 0\n    for x in xs:\n        s += x * n\n    return s\n"
ITEM = {"id": "a", "language": "python", "source": SOURCE, "where": "items, line 1"}
NAMES = ["total", "n", "xs", "s", "x"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"total": "weighted_sum", "n": "factor"}',
        'Sure!\n```json\n{\n  "total": "weighted_sum",\n  "n": "factor"\n}\n```\nDone.',
        "total -> weighted_sum\nn -> factor",
        "- `total`: `weighted_sum`\n- `n`: `factor`",
        "{'total': 'weighted_sum', 'n': 'factor'}",
        '<think>"total": "wrong", n: bad</think>{"total": "weighted_sum", "n": "factor"}',
        '{"total": "draft", "n": "x1"}\nBetter:\n{"total": "weighted_sum", "n": "factor"}',
    ],
)
def test_replies_of_many_shapes_are_read(reply):
    proposed, counts = usable_names(reply, NAMES, ITEM)
    assert proposed == {"total": "weighted_sum", "n": "factor"}
    assert (counts.wanted, counts.usable, counts.refused) == (5, 2, {"without a proposal": 3})


def test_only_usable_proposals_are_taken():
    reply = '{"total": "for", "n": "xs", "xs": "two words", "s": "tally", "x": "tally"}'
    proposed, counts = usable_names(reply, NAMES, ITEM)
    assert proposed == {"s": "tally"}
    assert counts.refused == {
        "with a reserved word": 1,
        "with a word of the code": 1,
        "with no identifier": 1,
        "with the name of another one": 1,
    }
    assert usable_names(None, NAMES, ITEM)[1].refused == {"without a reply": 5}
    around = {**ITEM, "around": "limit = 3\n", "names": {"xs": "weights"}}
    proposed, counts = usable_names('{"n": "limit", "s": "weights", "x": "x"}', ["n", "s", "x"], around)
    assert proposed == {}
    assert counts.refused == {"with a word of the code": 2, "with the old name again": 1}


def test_names_that_look_alike_or_never_end_are_refused():
    reply = json.dumps({"total": "t\u043etal", "n": "größe", "s": "s" * 65}, ensure_ascii=False)
    proposed, counts = usable_names(reply, ["total", "n", "s"], ITEM)
    assert proposed == {}
    assert counts.refused == {"with letters of another script": 2, "with more than 64 characters": 1}
    # Code that is written in such letters keeps its style.
    german = {**ITEM, "source": SOURCE.replace("xs", "länge")}
    assert usable_names(reply, ["n"], german)[0] == {"n": "größe"}


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=8)), st.text(max_size=30))
def test_any_reply_gives_names_that_the_rewriter_takes(names, noise):
    proposed, counts = usable_names(noise + json.dumps(names, ensure_ascii=False) + noise, NAMES, ITEM)
    assert counts.usable + counts.refused.total() == counts.wanted
    found = rewrite(SOURCE, "python", ["rename-function", "rename-parameter", "rename-variable"], proposed)
    assert found.names == proposed


def write(tmp_path, url, items=(ITEM,), **keys):
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    keys = {"base_url": url, "model": "m", "retries": 0, **keys}
    (tmp_path / "m.toml").write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
    )
    out = tmp_path / "out.jsonl"
    names = ["--names", f"llm={tmp_path / 'm.toml'}"]
    return ["perturb", "code", "--jsonl", str(tmp_path / "items.jsonl"), *names, "-o", str(out)], out


def test_a_model_names_each_item_once(tmp_path, capsys):
    items = [ITEM, {**ITEM, "id": "b", "names": {"n": "factor"}}, {**ITEM, "id": "c", "source": "def ("}]
    with chat_server() as server:
        server.reply = lambda prompt: '{"total": "weighted_sum", "n": "factor", "s": "for"}'
        command, out = write(tmp_path, server.url, items)
        assert main([*command, "--variants", "2"]) == 0
        assert len(server.requests) == 2
        prompts = [body["messages"][0]["content"] for _, _, body in server.requests]
        assert "total, n, xs, s, x" in prompts[0] or "total, n, xs, s, x" in prompts[1]
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [(row["id"], row.get("variant")) for row in rows] == [
            ("a", 0),
            ("a", 1),
            ("b", 0),
            ("b", 1),
            ("c", None),
        ]
        for row in (rows[0], rows[2]):
            assert row["names"]["total"] == "weighted_sum"
            assert row["names"]["n"] == "factor"
            # A refused proposal, and missing ones, give names of the lexicon.
            assert row["names"]["xs"] == "values"
            assert row["names"]["s"] == "number"
        told = capsys.readouterr().err
        assert (
            "the model's names: 3 of 9 usable; other names instead for 4 without a proposal, 2 with" in told
        )
        before = out.read_bytes()
        assert main([*command, "--variants", "2", "--overwrite"]) == 0
        assert len(server.requests) == 2
        assert out.read_bytes() == before
    # With the record, no endpoint is needed.
    assert main([*command, "--variants", "2", "--overwrite"]) == 0
    assert out.read_bytes() == before


def test_a_lost_endpoint_gives_status_1_and_no_output(tmp_path, capsys):
    with chat_server() as server:
        server.reply = lambda prompt: None
        command, out = write(tmp_path, server.url)
        assert main(command) == 1
        assert "the same command continues" in capsys.readouterr().err
        assert not out.exists()
        server.reply = lambda prompt: "no names"
        assert main(command) == 0


def test_a_template_of_ones_own(tmp_path):
    (tmp_path / "names.j2").write_text("{{ id }} {{ names | length }} {{ language }}")
    with chat_server() as server:
        server.reply = lambda prompt: "total: all_of_it"
        command, _ = write(tmp_path, server.url, template="names.j2")
        assert main(command) == 0
        assert server.requests[0][2]["messages"][0]["content"] == "a 5 python"


@pytest.mark.parametrize(
    ("keys", "message"), [({"tempratur": 1}, "tempratur"), ({"template": "none.j2"}, "none.j2")]
)
def test_wrong_settings_give_one_line(tmp_path, capsys, keys, message):
    command, out = write(tmp_path, "http://127.0.0.1:1", **keys)
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not out.exists()


def test_a_model_names_items_only(tmp_path, capsys):
    command, _ = write(tmp_path, "http://127.0.0.1:1")
    assert main(["perturb", "code", str(tmp_path), *command[4:]]) == 2
    assert "goes with --jsonl" in capsys.readouterr().err
