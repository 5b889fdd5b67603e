"""The record of replies, and sessions that ask what the record lacks."""

import hashlib
import json

import pytest

from simllm.errors import InputError
from simllm.llm import Model
from simllm.llm.records import ReplyRecord, Slot
from simllm.llm.reply import Reply
from simllm.llm.session import Question, Session

REQUEST = {"messages": "0" * 64}


def test_equal_questions_without_an_item_share_their_reply(server, tmp_path):
    server.reply = lambda body: body["messages"][0]["content"].upper()
    model = Model(base_url=server.url, parallel=1)
    questions = [Question(text) for text in ("a", "b", "a", "c", "b")]
    for asked in (3, 0):  # the second session finds all in the cache
        record = ReplyRecord(tmp_path / "cache.jsonl")
        with Session(model, record) as session:
            replies = {question: reply.text for question, reply in session.ask_all(questions)}
            assert [replies[question] for question in questions] == ["A", "B", "A", "C", "B"]
            assert session.asked == asked
            assert session.ask(Question("a")).text == "A"
        record.close()
    own = Question("a", Slot("item 1", 2))
    with Session(model, ReplyRecord(tmp_path / "cache.jsonl")) as session:
        assert session.find(own) is None


def test_conversations_have_rounds(server, tmp_path):
    server.reply = lambda body: str(len(body["messages"]))
    with Session(Model(base_url=server.url), ReplyRecord(tmp_path / "c.jsonl")) as session:
        history = [{"role": "user", "content": "x"}]
        assert session.ask(Question(history, Slot("i", 1, 1))).text == "1"
        history = [*history, {"role": "assistant", "content": "1"}, *history]
        assert session.ask(Question(history, Slot("i", 1, 2))).text == "3"
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [(row["id"], row["sample"], row.get("round", 1)) for row in rows] == [("i", 1, 1), ("i", 1, 2)]


def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path):
    file = tmp_path / "r.jsonl"
    record = ReplyRecord(file)
    record.keep(REQUEST, Slot("a"), Reply("one"))
    record.close()
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:30])
    record = ReplyRecord(file)
    assert file.read_bytes() == whole + whole[:30]  # only when something is written
    record.keep(REQUEST, Slot("b"), Reply("two"))
    record.close()
    assert file.read_bytes().startswith(whole)
    assert len(ReplyRecord(file).rows()) == 2


@pytest.mark.parametrize(
    "content", ["mine", "{}\n", "[1]\n", '{"request": {}, "reply": 1}\n', '{"request": {}}\n', "\xff\n"]
)
def test_files_of_others_are_refused_and_kept(tmp_path, content):
    file = tmp_path / "r.jsonl"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"r\.jsonl"):
        ReplyRecord(file)
    assert file.read_text(encoding="latin-1") == content


def test_links_are_not_followed(tmp_path):
    (tmp_path / "mine").write_text("")
    (tmp_path / "r.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="is a link"):
        ReplyRecord(tmp_path / "r.jsonl")


def test_two_processes_do_not_cut_off_each_other(tmp_path):
    first, second = ReplyRecord(tmp_path / "r.jsonl"), ReplyRecord(tmp_path / "r.jsonl")
    first.keep(REQUEST, Slot("a"), Reply("one"))
    with pytest.raises(InputError, match="another process is writing there"):
        second.keep(REQUEST, Slot("b"), Reply("two"))
    first.close()
    assert len(ReplyRecord(tmp_path / "r.jsonl").rows()) == 1


def test_a_replay_reads_records_of_the_first_version(tmp_path):
    """Those of the first `simllm repair`: the request as one hash, and the reply as the endpoint sent it."""
    messages = [{"role": "user", "content": "x"}]
    asked = {"model": "m", "messages": messages, "temperature": 1, "top_p": 1}
    compact = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    body = json.dumps({"choices": [{"message": {"content": "yes"}}], "usage": usage})
    row = {"request": hashlib.sha256(compact.encode()).hexdigest(), "item": "i", "attempt": 2, "round": 1}
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({**row, "status": 200, "body": body}) + "\n")

    def session(model):
        return Session(Model(model=model), ReplyRecord(file, reads_only=True), is_replay=True)

    reply = session("m").ask(Question(messages, Slot("i", 2)))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("yes", 3, 1)
    for model, slot in (("m", Slot("i", 1)), ("m", Slot("j", 2)), ("other", Slot("i", 2))):
        with pytest.raises(InputError, match="has no reply to this request"):
            session(model).ask(Question(messages, slot))
    file.write_text(json.dumps({**row, "status": True, "body": body}) + "\n")
    with pytest.raises(InputError, match="line 1: attempt, round and status must be whole numbers"):
        session("m")
