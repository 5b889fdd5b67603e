"""Answers of a model: labels in answers of all kinds, and questions that are asked in parallel."""

import threading
import time

import pytest

from simllm.errors import InputError
from simllm.llm import endpoint
from simllm.llm.answers import ask_all, read_label, without_thinking
from simllm.llm.endpoint import ChatClient, LostReplyError, make_request, parse_reply

YES = [
    "yes", "Yes.", "YES!", "**Yes**", "_Yes_", "`yes`", '"Yes"', "Yes, because no error is left.",
    "Yes \u2014 the function has no such line any more.", "Yes\n\nThere is no TODO left.",
    "Yes. No debt is left.",
    "Answer: yes", "**Answer:** yes, as no line remains", "Final answer: **Yes**", "The answer is yes.",
    '{"answer": "yes", "reason": "there is no comment"}', "Verdict: Yes (no doubt)", "# Answer\nyes",
    "<think>No, it does not. Or does it? no</think>\n\nyes", "<THINK>\nno\n</THINK>Answer: yes",
    "no, wait. no</think>\nyes", "<|channel|>analysis<|message|>no<|channel|>final<|message|>yes",
    "1. The comment asks for a check.\n2. The check is there.\n\nSo: yes",
    "- **Change**: the loop is gone.\n- Yes, the change repays the debt.",
    "At first I thought no. But the new code does it: yes", "I would say yes",
    "No.\n\nWait, I misread the code.\n\nYes.", "no? no. Answer: no. Sorry. Answer: yes",
]  # fmt: skip
NO = [
    "no", "No, yes.", "No.\nAnswer: no", "**No**: the comment asks for more. Yes, it is shorter.\n\nNo.",
    "<think>yes</think>no", "The comment was only removed, so no.", "Answer: No, yes would be wrong.",
]  # fmt: skip
UNCLEAR = [
    "", "   ", "Maybe", "yesterday", "YesYes", "Nope", "nothing", "<think>yes", "<think>yes</think>",
    "It depends. Answer: it depends on the tests", "eyes and nose",
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "label"),
    [*((text, "yes") for text in YES), *((text, "no") for text in NO), *((text, None) for text in UNCLEAR)],
)
def test_label_of_an_answer(answer, label):
    assert read_label(answer, ("yes", "no")) == label


def test_labels_of_other_sets():
    labels = ("pass", "fail", "not sure", "sure")
    assert read_label("It is Not sure.", labels) == "not sure"
    assert read_label("The password fails; PASS", labels) == "pass"


def test_long_answers_are_read_in_linear_time():
    begun = time.monotonic()
    for text in (
        "<think>" * 100_000,
        "answer" * 200_000,
        "  ." * 400_000 + "yes",
        "*" * 1_000_000,
        *(signs * 200_000 for signs in (". ", "!\t", ": - ")),
        "yes " * 300_000,
    ):
        read_label(text, ("yes", "no"))
    assert time.monotonic() - begun < 10


def test_thinking_is_removed():
    assert without_thinking("<think>a</think>b<reasoning>c</reasoning>d") == "bd"


def request(text):
    return make_request(None, [{"role": "user", "content": text}])


def test_questions_are_asked_in_parallel(server):
    """The server answers only when four questions are there at the same time."""
    together = threading.Barrier(4, timeout=30)
    server.reply = lambda body: together.wait() is not None and body["messages"][0]["content"]
    client = ChatClient(f"{server.url}/v1")
    found = dict(ask_all(client, ((str(n), request(str(n))) for n in range(12)), 4))
    assert {key: parse_reply(reply).text for key, reply in found.items()} == {
        str(n): str(n) for n in range(12)
    }


def test_one_lost_answer_does_not_stop_the_others(server):
    server.reply = lambda body: (500, {}, b"") if body["messages"][0]["content"] == "3" else "yes"
    found = dict(
        ask_all(ChatClient(f"{server.url}/v1", 0), ((str(n), request(str(n))) for n in range(30)), 3)
    )
    assert [key for key, reply in found.items() if isinstance(reply, LostReplyError)] == ["3"]
    assert len(found) == 30


def test_a_lost_endpoint_ends_the_questions(server):
    server.reply = lambda body: (500, {}, b"broken")
    found = []
    with pytest.raises(LostReplyError, match="broken"):
        found.extend(
            ask_all(ChatClient(f"{server.url}/v1", 0), ((str(n), request("")) for n in range(99)), 2)
        )
    assert 10 <= len(server.requests) <= 12


def test_a_refusing_endpoint_is_an_error(server):
    server.reply = lambda body: (401, {}, b"who are you?")
    with pytest.raises(InputError, match="who are you"):
        list(ask_all(ChatClient(f"{server.url}/v1"), [("a", request(""))], 2))


def test_closing_ends_questions_under_way(server, monkeypatch):
    monkeypatch.setattr(endpoint, "_LONGEST", 60)
    server.reply = lambda body: "yes" if body["messages"][0]["content"] == "0" else time.sleep(20)
    asked = ask_all(ChatClient(f"{server.url}/v1"), ((str(n), request(str(n))) for n in range(8)), 4)
    next(asked)
    begun = time.monotonic()
    asked.close()
    assert time.monotonic() - begun < 5
