"""Explanations of scores: the contributions of words sum to the score, and all output formats work."""

import json
import re
import sys
from html.parser import HTMLParser

import pytest

from simllm import InputError, SimLLM
from simllm.analysis.explanation import Explanation, Word, explain, explain_clauses, explain_pairs
from simllm.cli.main import main
from tests.browser import check_page, needs_browser
from tests.cli.test_commands import on_a_terminal, run

PAIR = ("adds two numbers <b>", "gets the sum & more of numbers")


def test_contributions_sum_to_the_score(model_folder):
    metric = SimLLM(model_folder)
    found = explain(metric, *PAIR)
    assert found.score == pytest.approx(metric.score([PAIR[0]], [PAIR[1]]).values[0], abs=1e-6)
    for words, rest in zip((found.candidate, found.reference), found.rest, strict=True):
        assert sum(word.contribution for word in words) + rest == pytest.approx(found.score)
    assert [word.text for word in found.candidate] == ["adds", "two", "numbers", "<", "b", ">"]
    same = explain(metric, "adds two numbers", "adds two numbers")
    assert [word.match for word in same.candidate] == ["adds", "two", "numbers"]
    assert [word.similarity for word in same.candidate] == pytest.approx([1.0] * 3)


def test_rejects_unsupported_texts_and_models(model_folder):
    with pytest.raises(InputError, match="empty after cleaning"):
        explain(SimLLM(model_folder), "", "adds two")
    with pytest.raises(InputError, match="only mean pooling with cosine"):
        explain(SimLLM(model_folder, pooling="cls"), "a", "b")
    with pytest.warns(UserWarning, match="1 of 2 texts cut at 64 tokens"):
        explain(SimLLM(model_folder), "adds two numbers " * 100, "adds two")


LONG_PAIR = (
    "This method opens the file and returns all its lines. It is commonly used in many applications.",
    "Closes the file. Returns all lines of the file.",
)


def test_clauses_that_add_nothing_or_contradict_are_named(tmp_path, capsys):
    metric = SimLLM()
    found = explain_clauses(metric, *LONG_PAIR)
    scores = metric.score([LONG_PAIR[0]], [LONG_PAIR[1]])
    assert found.score == pytest.approx(scores.values[0], abs=1e-6)
    assert found.same == pytest.approx(scores.same[0], abs=1e-6)
    mean = 2 * found.precision * found.recall / (found.precision + found.recall)
    assert found.score == pytest.approx(mean * found.length_factor)
    assert found.length_factor == pytest.approx((9 + 40) / (17 + 40))
    notes = {clause.text: clause.note for clause in found.candidate}
    assert notes == {
        "opens the file": "meaning may have changed",
        "returns all its lines.": "",
        "is commonly used in many applications.": "adds something without support",
    }
    omitted = explain_clauses(metric, LONG_PAIR[1], "Closes the file. Sends a mail to the customer.")
    assert [clause.note for clause in omitted.reference] == ["", "not said"]
    assert explain_clauses(metric, *PAIR) is None
    assert explain_clauses(SimLLM(long="whole"), *LONG_PAIR) is None
    with pytest.raises(InputError, match="a text has several sentences"):
        explain(metric, *LONG_PAIR)
    assert main(["explain", *LONG_PAIR]) == 0
    text = capsys.readouterr().out
    assert "[adds something without support]" in text
    assert "17 words, reference 9" in text
    assert main(["explain", *LONG_PAIR, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["candidate"][0]["note"] == "meaning may have changed"
    page = tmp_path / "why.html"
    assert main(["explain", LONG_PAIR[0] + " <b>.", LONG_PAIR[1], "-f", "html", "-o", str(page)]) == 0
    assert "adds something without support" in page.read_text()
    assert "<b>" not in page.read_text()
    assert main(["explain", *LONG_PAIR, "--long", "whole"]) == 0
    assert "(start and end)" in capsys.readouterr().out


class Words(HTMLParser):
    def __init__(self):
        super().__init__()
        self.cells, self.links, self.inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "td"
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        if self.inside:
            self.cells.append(data)
            self.inside = False


def test_text_json_and_html_output(model_folder, tmp_path):
    explained = ("explain", *PAIR, "--model", model_folder)
    result = json.loads(run(*explained, "-f", "json").stdout)
    plain = run(*explained).stdout
    assert f"score {result['score']:.4f}" in plain
    assert "\x1b" not in plain
    page = tmp_path / "why.html"
    assert run(*explained, "-f", "html", "-o", page).returncode == 0
    read = Words()
    read.feed(page.read_text())
    assert {"adds", "two", "numbers", "<", "&"} <= set(read.cells)
    assert read.links == []


@pytest.mark.slow
@needs_browser
def test_page_in_a_browser(model_folder, tmp_path):
    words = ("returns the name of the user who owns the file", "gets the name of the file's owner")
    done = run("explain", *words, "-f", "html", "-o", tmp_path / "why.html", "--model", model_folder)
    assert done.returncode == 0, done.stderr
    check_page(tmp_path / "why.html", tmp_path, height=900)


def test_text_output_works_without_jinja(model_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "simllm.io.html_page", raising=False)
    assert run("explain", *PAIR, "--model", model_folder).returncode == 0
    done = run("explain", *PAIR, "-f", "html", "--model", model_folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "simllm: error: jinja2 is not installed; in a checkout of simllm, run pip install '.[eval]'\n"
    )


@pytest.mark.slow
def test_colours_on_a_terminal(model_folder):
    shown = on_a_terminal("explain", *PAIR, "--model", model_folder)
    assert re.search(r"\x1b\[48;2;\d+;\d+;\d+m\x1b\[38;2;0;0;0madds ", shown)


def test_several_pairs_are_explained_as_one_by_one(model_folder):
    metric = SimLLM(model_folder)
    pairs = [("adds two numbers", "adds numbers"), ("a", "returns the name of the file"), ("x y", "x y")]
    for pair, together in zip(pairs, explain_pairs(metric, pairs), strict=True):
        alone = explain(metric, *pair)
        assert together.score == pytest.approx(alone.score, abs=1e-5)
        for side in ("candidate", "reference"):
            words = [(word.text, word.match) for word in getattr(alone, side)]
            assert [(word.text, word.match) for word in getattr(together, side)] == words
            contributions = [word.contribution for word in getattr(alone, side)]
            shown = [word.contribution for word in getattr(together, side)]
            assert shown == pytest.approx(contributions, abs=1e-5)


def word_of(text, same_without):
    return Word(text, 0.1, "match", 0.5, same_without)


def test_changing_words_are_in_one_text_only_if_there_are_such_words():
    shared = [word_of("sets", 0.9), word_of("script", 0.2)]
    own = Explanation(0.9, shared, [*shared, word_of("existing", 0.8)], (0, 0), "", 0.1, True)
    assert own.changing_words == ["existing"]
    swapped = Explanation(0.9, shared, shared[::-1], (0, 0), "", 0.1, True)
    assert swapped.changing_words == ["sets"]


def test_punctuation_is_no_changing_word():
    side = [word_of("empty", 0.4), word_of(".", 0.9), word_of("<", 0.45)]
    assert Explanation(0.9, side, [word_of("x", 0.1)], (0, 0), "", 0.1, True).changing_words == ["<", "empty"]
    assert Explanation(0.9, side[1:2], side[1:2], (0, 0), "", 0.1, True).changing_words == []
