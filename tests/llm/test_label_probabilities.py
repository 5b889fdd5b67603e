"""Probabilities of labels from log-probabilities of tokens, for labels of one token and of several."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.llm.answers import label_probabilities, places_of_label, read_label
from simllm.llm.endpoint import RawReply
from simllm.llm.reply import Place, from_row, parse_reply, to_row
from tests.command import run

WORDS = ["pass", "passed", "fail", "no", "no change", "not sure", "yes", "y", "1", "10", "-1", "C", "C++"]


def places_along(path, distribution):
    """Return the places of a reply: at each, all tokens that the distribution over replies allows there."""
    found = []
    for number, token in enumerate(path):
        here = {}
        for tokens, weight in distribution.items():
            if tokens[:number] == path[:number] and len(tokens) > number:
                here[tokens[number]] = here.get(tokens[number], 0.0) + weight
        total = sum(here.values())
        found.append(Place(token, {one: math.log(weight / total) for one, weight in here.items()}))
    return found


@st.composite
def models(draw):
    """Draw labels, and a model that answers with one of them, each in tokens of its own, and then ends."""
    labels = draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=5, unique=True))
    distribution = {}
    for label in labels:
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(label) - 1)), max_size=3)))
        pieces = [label[a:b] for a, b in zip([0, *cuts], [*cuts, len(label)], strict=True) if a < b]
        pieces[0] = draw(st.sampled_from(["", " ", "**"])) + pieces[0]
        if draw(st.booleans()):
            pieces = [piece.upper() for piece in pieces]
        distribution[(*pieces, "")] = draw(st.floats(0.01, 1.0))
    return labels, distribution


@settings(max_examples=500)
@given(models(), st.data())
def test_probabilities_are_those_of_the_model_or_none(model, data):
    labels, distribution = model
    path = data.draw(st.sampled_from(sorted(distribution)))
    answer = "".join(path)
    label = read_label(answer, labels)
    assert label is not None
    assert answer.strip(" *").lower() == label.lower()
    kept = places_of_label(answer, places_along(path, distribution), labels)
    found = label_probabilities(kept, labels)
    assert found is not None
    assert found.mass == pytest.approx(1)
    if found.values is None:
        return  # the first token of other labels is the same: their shares are not known
    total = sum(distribution.values())
    for tokens, weight in distribution.items():
        name = next(one for one in labels if one.lower() == "".join(tokens).strip(" *").lower())
        assert found.values[name] == pytest.approx(weight / total, abs=0.011)  # one percent may be open


def test_labels_of_one_token_always_have_probabilities():
    distribution = {(" Pass", ""): 0.5, ("pass", ""): 0.2, ("FAIL", ""): 0.2, ("The", ""): 0.1}
    kept = places_of_label(" Pass", places_along((" Pass", ""), distribution), ["pass", "fail"])
    found = label_probabilities(kept, ["pass", "fail"])
    assert found.values == pytest.approx({"pass": 7 / 9, "fail": 2 / 9})
    assert found.mass == pytest.approx(0.9)


def test_what_stands_before_the_label_does_not_count():
    path = ("Yes", " or", " no", "?", "\n", "Answer", ":", " no", "")
    distribution = {path: 0.3, (*path[:7], " yes", ""): 0.7}
    text = "".join(path)
    found = label_probabilities(
        places_of_label(text, places_along(path, distribution), ["yes", "no"]), ["yes", "no"]
    )
    assert found.values == pytest.approx({"yes": 0.7, "no": 0.3})


def test_thoughts_among_the_tokens_are_passed_over():
    """vLLM sends tokens of the thoughts, too, and the text without them."""
    path = ("<think>", "yes", "</think>", "no", "<|im_end|>")
    distribution = {path: 0.6, (*path[:3], "yes", "<|im_end|>"): 0.4}
    found = label_probabilities(
        places_of_label("no", places_along(path, distribution), ["yes", "no"]), ["yes", "no"]
    )
    assert found.values == pytest.approx({"yes": 0.4, "no": 0.6})


def test_no_probabilities_where_two_labels_share_a_token():
    distribution = {("yes", ""): 0.5, ("un", "clear", ""): 0.25, ("un", "sure", ""): 0.25}
    labels = ["yes", "unclear", "unsure"]
    kept = places_of_label("yes", places_along(("yes", ""), distribution), labels)
    assert label_probabilities(kept, labels).values is None
    kept = places_of_label("unsure", places_along(("un", "sure", ""), distribution), labels)
    assert label_probabilities(kept, labels).values == pytest.approx(
        {"yes": 0.5, "unclear": 0.25, "unsure": 0.25}
    )


def test_labels_with_another_sign_between_their_words():
    """A model that means non-clone writes "non clone"."""
    path = ("non", " clone", "")
    distribution = {path: 0.6, ("clone", ""): 0.3, ("non", "-", "clone", ""): 0.1}
    labels = ["clone", "non-clone"]
    kept = places_of_label("non clone", places_along(path, distribution), labels)
    assert [place.token for place in kept] == ["non", " clone", ""]
    assert label_probabilities(kept, labels).values == pytest.approx({"clone": 0.3, "non-clone": 0.7})


CHAT = {
    "message": {"content": "fail"},
    "logprobs": {
        "content": [
            {
                "token": "fail", "bytes": [102, 97, 105, 108], "logprob": -0.5,
                "top_logprobs": [{"token": "fail", "logprob": -0.5}, {"token": "pass", "logprob": -1.5}],
            }
        ]
    },
}  # fmt: skip
OLD = {
    "text": "fail",
    "logprobs": {
        "tokens": ["fail"], "token_logprobs": [-0.5], "top_logprobs": [{"fail": -0.5, "pass": -1.5}],
        "text_offset": [0],
    },
}  # fmt: skip


@pytest.mark.parametrize("choice", [CHAT, OLD])
def test_formats_of_log_probabilities(choice):
    reply = parse_reply(RawReply(200, json.dumps({"choices": [choice]})))
    assert reply.places == (Place("fail", {"fail": -0.5, "pass": -1.5}),)
    assert from_row(json.loads(json.dumps(to_row(reply)))) == reply


def classify(tmp_path, server, *options):
    rows = [{"id": n, "gold": "pass" if n % 2 else "fail"} for n in range(8)]
    (tmp_path / "i.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.j2").write_text("Does test {{ id }} pass?")
    words = ("generate", tmp_path / "i.jsonl", "--template", tmp_path / "t.j2", "--labels", "pass,fail")
    return run(*words, "--base-url", server.url, "-o", tmp_path / "o.jsonl", *options)


@pytest.mark.slow
def test_predictions_go_to_evaluate_classifiers_as_they_are(server, tmp_path):
    server.reply = lambda body: (
        200,
        {},
        json.dumps({"choices": [CHAT], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}).encode(),
    )
    done = classify(tmp_path, server, "--logprobs", "--samples", 2)
    assert done.returncode == 0
    assert done.stderr.endswith("fail 16, without a label 0\n")
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert rows[0]["predicted"] == "fail"
    assert rows[0]["probabilities"] == pytest.approx({"pass": 0.268941, "fail": 0.731059})
    report = run(
        "evaluate", "classifiers", tmp_path / "o.jsonl", "--positive", "pass", "--out", tmp_path / "r"
    )
    assert report.returncode == 0, report.stderr
    result = (tmp_path / "r" / "classifiers.json").read_text()
    assert "brier" in result.lower()


def test_an_endpoint_without_log_probabilities_is_one_clear_line(server, tmp_path):
    server.reply = lambda body: "fail"
    done = classify(tmp_path, server, "--logprobs")
    assert done.returncode == 2
    assert done.stderr == (
        "simllm: error: --logprobs: the endpoint sends no log-probabilities; leave it out, or use another\n"
    )


def test_replies_without_a_label_are_counted(server, tmp_path):
    server.reply = lambda body: "perhaps" if "3" in str(body) else "<think>fail</think>Answer: pass"
    done = classify(tmp_path, server)
    assert "warning: replies without a label: 1 of 8\n" in done.stderr
    assert done.stderr.endswith("pass 7, without a label 1\n")


def test_counts_of_labels_stand_apart_from_other_counts(server, tmp_path):
    server.reply = lambda body: (
        "failed" if "3" in str(body) else (400, {}, b"{}") if "4" in str(body) else "?"
    )
    words = ("--labels", "failed,passed", "-f", "json")
    done = classify(tmp_path, server, *words)
    counts = json.loads(done.stdout)
    assert (counts["replies"], counts["failed"]) == (7, 1)
    assert counts["labels"] == {"failed": 1, "without a label": 6}
    assert "replies without a label: 6 of 7" in " ".join(counts["warnings"])
