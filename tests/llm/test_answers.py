"""Answers of a model: labels in answers of all kinds, and questions that are asked in parallel."""

import time

import pytest

from simllm.errors import OptionError
from simllm.llm.answers import check_labels, read_label, without_thinking

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


@pytest.mark.parametrize(
    ("answer", "labels", "label"),
    [
        # Denials: what the model means instead is not known, unless another label stands there.
        ("It does not pass.", "pass,fail", None),
        ("Not pass. It will fail.", "pass,fail", "fail"),
        ("This can't fail", "pass,fail", None),
        ("Answer: not **pass**", "pass,fail", None),
        ("It isn\u2019t a clone", "clone,other", None),
        ("There is no bug.", "bug,clean", None),
        ("Why not? Pass", "pass,fail", "pass"),
        ("There is no bug, so yes", "yes,no", "yes"),
        # A question or a list of choices is repeated.
        ("It could pass or fail", "pass,fail", None),
        ("Answer: yes or no", "yes,no", None),
        ("pass/fail: fail", "pass,fail", "fail"),
        ('"A", "B" or "C"', "A,B,C", None),
        ("Pass? No, it will fail.", "pass,fail", "fail"),
        # Numbers
        ("4/5", "1,2,3,4,5", "4"),
        ("4 out of 5", "1,2,3,4,5", "4"),
        ("1/2/3/4/5", "1,2,3,4,5", None),
        ("I'd rate this 4.5", "1,2,3,4,5", None),
        ("-1", "0,1", None),
        ("It is 4.", "4,5", "4"),
        # Spellings
        ("non clone", "clone,non-clone", "non-clone"),
        ("This is not  clone", "clone,not clone", "not clone"),
        ("The best is option B because a loop", "A,B", "B"),
        ("a", "A,B", "A"),
        ("\u0130stanbul", "istanbul,ankara", "istanbul"),
    ],
)
def test_denied_listed_and_respelled_labels(answer, labels, label):
    assert read_label(answer, labels.split(",")) == label


@pytest.mark.parametrize("labels", [("no change", "no-change"), ("\u0130a", "ia")])
def test_labels_that_answers_cannot_tell_apart(labels):
    with pytest.raises(OptionError, match="a label stands twice"):
        check_labels(labels)


def test_long_answers_are_read_in_linear_time():
    begun = time.process_time()
    for text in (
        "<think>" * 30_000,
        "answer" * 60_000,
        "  ." * 100_000 + "yes",
        "*" * 300_000,
        *(signs * 60_000 for signs in (". ", "!\t", ": - ")),
        "yes " * 100_000,
        "yes, " * 30_000,
        "yes/" * 30_000,
        "not " * 60_000 + "yes",
        ("yes" + " " * 1000) * 300,
    ):
        read_label(text, ("yes", "no"))
    assert time.process_time() - begun < 10


def test_thinking_is_removed():
    assert without_thinking("<think>a</think>b<reasoning>c</reasoning>d") == "bd"
