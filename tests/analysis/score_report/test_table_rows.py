"""The rows of a report's table in Chromium: marked words, notes and long texts."""

import json

import numpy as np
import pytest
from playwright.sync_api import expect

from simllm.analysis.comparison import compare_scores
from simllm.analysis.score_report import ScoredPairs
from tests.analysis.score_report.reports import HOSTILE, column, run_of
from tests.browser import needs_browser


@needs_browser
def test_the_lowest_scores_come_first_with_marked_words(page, run):
    assert column(page, "score") == pytest.approx(np.sort(run.main)[:25], abs=6e-4)
    page.get_by_role("button", name="See the worst pairs").click()
    expect(page.locator(".pairs tbody tr").nth(2)).to_be_in_viewport()
    row = page.locator(".pairs tbody tr", has_text="gets the name of item").first
    assert row.locator("td[data-name=candidate] mark").all_inner_texts()[:2] == ["gets", "item"]
    assert "distinct reference words missing" in row.inner_text()


@needs_browser
def test_words_that_differ_in_a_vowel_sign_are_marked(open_report):
    run = ScoredPairs(["\u0915\u0940 a"], {"": ["\u0915\u093f a"]}, {"score": np.ones(1)})
    report = open_report(run)
    assert report.page.locator("td mark").all_inner_texts() == ["\u0915\u093f", "\u0915\u0940"]


@needs_browser
def test_the_note_on_common_words_agrees_with_their_share(open_report):
    references = ["\u00c9crit le nom .", "\u0391\u03a3 \u2014 .", "\u540d\u524d .", "a\x1cb \u0130.", "... !"]
    candidates = ["\u00e9crit tout .", "\u03b1\u03c2 \u2014 .", "\u8aad\u3080 .", "a b i .", "reads !"]
    run = ScoredPairs(references, {"": candidates}, {"score": np.arange(5) / 5})
    report = open_report(run)
    notes = report.page.locator("td[data-name=note]").all_inner_texts()
    none = [("no common words" in note or "reference has no words" in note) for note in notes]
    assert none == [share == 0 for share in column(report.page, "words")] == [False, False, True, True, True]


@needs_browser
@pytest.mark.parametrize("number", range(1, len(HOSTILE) + 1))
def test_hostile_texts_are_shown_as_text(page, number):
    page.select_option("#order", label="as in the input")
    row = page.locator(f"#pair-{number}")
    text = row.locator("td[data-name=candidate]").inner_text()
    assert text.split()[:3] == HOSTILE[number - 1].split()[:3]
    assert row.locator("script, img").count() == 0
    assert page.title() == "Scores of 400 pairs"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1100


@needs_browser
def test_systems_stand_beside_each_other(open_report):
    scores = {"first": np.array([0.2, 0.9, 0.4]), "second": np.array([0.8, 0.1, 0.4])}
    texts = {"first": ["reads a file", "adds", "x"], "second": ["opens the file", "subtracts", "x"]}
    same = {"first": np.array([1, 0.9, 1]), "second": np.array([0, 0, 0.4])}
    changed = {"first": np.zeros(3, bool), "second": np.array([True, False, False])}
    run = ScoredPairs(
        ["opens a file", "adds", "y"], texts, scores, same, changed, changed_by={"second": {0: ["reads"]}}
    )
    report = open_report(run, compare_scores(scores))
    report.page.select_option("#order", label="first most above second")
    row = report.page.locator(".pairs tbody tr").first
    assert row.get_attribute("id") == "pair-2"
    assert "first: .900, same .900\nadds\nsecond: .100, same .000\nsubtracts" in row.inner_text()
    report.page.select_option("#filter", label="meaning may have changed")
    expect(report.page.locator("#status")).to_have_text("1 of 3 pairs")
    assert report.page.locator(".pairs .cause").count() == 0  # "reads" is not in the texts of "second"
    note = 'second: meaning may have changed; second changed by: "reads"'
    assert report.page.inner_text(".pairs td.note") == note
    assert "distinct reference words" not in report.page.inner_text("main")
    assert report.faults() == []


@needs_browser
def test_a_flagged_pair_names_the_words_that_changed_the_meaning(open_report):
    run = ScoredPairs(
        ["the list is empty", "opens the file", "reads a line"],
        {"": ["the list is not empty", "closes the file", "writes a line"]},
        {"score": np.array([0.9, 0.8, 0.7])},
        same={"score": np.zeros(3)},
        changed={"score": np.ones(3, bool)},
        changed_by={"score": {0: ["not"], 1: []}},
    )
    report = open_report(run)
    report.page.get_by_role("button", name="See pairs whose meaning may have changed").click()
    expect(report.page.locator("#filter option:checked")).to_have_text("meaning may have changed")
    notes = [text.split("; ") for text in report.page.locator("td.note").all_inner_texts()]
    assert notes[0] == ["meaning may have changed", 'changed by: "not"']
    assert report.page.locator("#pair-1 mark > strong.cause").all_inner_texts() == ["not"]
    assert report.page.locator(".pairs .cause").count() == 1
    expect(report.page.locator(".key")).to_contain_text(
        "Without these words, the same meaning is more probable"
    )
    assert notes[1][:2] == ["meaning may have changed", "changed by no single word"]
    assert notes[2] == ["meaning may have changed", "1 of 3 distinct reference words missing"]
    report.page.click("#copy-json")
    expect(report.page.locator("#done")).to_have_text("Copied 3 pairs.")
    records = json.loads(report.page.evaluate("navigator.clipboard.readText()"))
    assert [record["changed by"] for record in records] == ["not", "", ""]
    assert report.faults() == []


@needs_browser
def test_changing_words_are_marked_beside_punctuation_accents_and_capitals(open_report):
    run = ScoredPairs(
        ["Caf\u00e9 \u2264 bar (open)!"],
        {"": ["a < re-open caf\u00e9s"]},
        {"score": np.ones(1)},
        same={"score": np.zeros(1)},
        changed={"score": np.ones(1, bool)},
        changed_by={"score": {0: ["cafe", "open", "<"]}},
    )
    report = open_report(run)
    marked = report.page.locator(".pairs .cause").all_inner_texts()
    assert marked == ["<", "re-open", "Caf\u00e9", "(open)!"]


@needs_browser
def test_long_texts_are_folded_but_found_and_printed(open_report):
    long = " ".join(f"word{i}" for i in range(100))
    run = ScoredPairs([long, "short"], {"": ["a", "b"]}, {"score": np.array([0.1, 0.2])})
    report = open_report(run)
    end = report.page.get_by_text("word99", exact=True)
    expect(report.page.get_by_text("word59")).to_be_visible()
    expect(end).to_be_hidden()
    report.page.emulate_media(media="print")
    expect(end).to_be_visible()
    report.page.emulate_media(media="screen")
    report.page.get_by_role("button", name="show all 100 words").click()
    expect(end).to_be_visible()
    report.page.get_by_role("button", name="show less").click()
    expect(end).to_be_hidden()
    report.page.fill("#query", "word99")
    expect(end).to_be_visible()
    expect(report.page.locator("#status")).to_have_text("1 of 2 pairs")
    assert report.faults() == []


@needs_browser
@pytest.mark.parametrize("words", [1, 60, 61, 65, 70, 71])
def test_every_word_of_a_text_is_shown_or_behind_the_button(open_report, words):
    text = " ".join(f"word{i}" for i in range(words))
    run = ScoredPairs([text, "short"], {"": ["a", "b"]}, {"score": np.array([0.1, 0.2])})
    report = open_report(run)
    button = report.page.get_by_role("button", name=f"show all {words} words")
    assert button.count() == (words > 70)
    if words > 70:
        button.click()
    assert report.page.locator("#pair-1 td[data-name=reference] mark").all_inner_texts() == text.split()


@needs_browser
def test_no_word_of_a_cut_text_counts_as_missing(open_report):
    long = "opens the file " * 200 + "last"
    run = ScoredPairs(["last", "last"], {"": [long, "first"]}, {"score": np.array([0.1, 0.2])})
    report = open_report(run)
    assert report.page.locator("#pair-1 mark").count() == 0
    assert (
        report.page.inner_text("#pair-1 td[data-name=note]")
        == "cut after 2,000 characters, words not compared"
    )
    assert report.page.locator("#pair-2 mark").all_inner_texts() == ["first", "last"]


CODE = (
    "int total(List<Item> items) {\n        int sum = 0;\n"
    + "".join(f"        sum += items.get({i}).price();\n" for i in range(30))
    + "        return sum;\n    }"
)


@needs_browser
@pytest.mark.parametrize("has_references", [False, True])
def test_code_keeps_its_lines_and_is_folded(open_report, has_references):
    run = run_of(2, code=[CODE, "</pre><b>x"], has_references=has_references)
    page = open_report(run).page
    headings = page.locator(".pairs thead th").all_inner_texts()
    assert ("reference" in headings) == has_references
    assert "code" in headings
    block = page.locator("#pair-1 td[data-name=code] pre")
    lines = block.inner_text().split("\n")
    # The margin of the class is gone, and the first twelve lines are here.
    assert lines[:3] == [
        "int total(List<Item> items) {",
        "    int sum = 0;",
        "    sum += items.get(0).price();",
    ]
    assert "items.get(10)" not in block.inner_text()
    page.get_by_role("button", name="show all 34 lines").click()
    assert "    return sum;\n}" in block.inner_text()
    assert page.locator("#pair-2 pre").inner_text() == "</pre><b>x"
    assert (page.locator("#pair-2 mark").count() > 0) == has_references
    page.fill("#query", "get(29)")
    expect(page.locator("#status")).to_have_text("1 of 2 pairs")


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_code_fits_the_screen_without_faults(open_report, scheme, width):
    report = open_report(run_of(3, code=[CODE.replace("sum", "s" * 120)] * 3, has_references=False))
    report.page.emulate_media(color_scheme=scheme)
    report.page.set_viewport_size({"width": width, "height": 900})
    assert report.page.evaluate("document.documentElement.scrollWidth") <= width
    assert report.faults() == []
