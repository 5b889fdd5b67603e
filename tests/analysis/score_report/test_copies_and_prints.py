"""A report in Chromium: copying from it, saving files, and printing."""

import json

import numpy as np
import pytest
from playwright.sync_api import expect

from simllm.analysis.score_report import ScoredPairs
from tests.browser import needs_browser


@needs_browser
def test_shown_pairs_are_copied_as_json_and_tsv(page, run):
    page.fill("#query", "of item 20")
    expect(page.locator("#status")).to_contain_text("of 400 pairs")
    page.click("#copy-json")
    expect(page.locator("#done")).to_contain_text("Copied")
    records = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert {record["candidate"] for record in records} == {
        text for text in run.candidates[""] if "of item 20" in text
    }
    first = records[0]
    assert first["score"] == pytest.approx(run.main[first["pair"] - 1], abs=5e-5)
    assert "distinct reference words missing" in first["note"]
    assert first["group language"] == run.groups["language"][first["pair"] - 1]
    page.fill("#query", "")
    page.click("#copy-tsv")
    expect(page.locator("#done")).to_have_text("Copied 400 pairs.")
    lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert len(lines) == 401
    assert {line.count("\t") for line in lines} == {lines[0].count("\t")}
    for form in ("tsv", "json"):
        page.click(f"#copy-{form}")
        expect(page.locator("#done")).to_have_text("Copied 400 pairs.")
        expect(page.locator("#done")).to_be_in_viewport()
        with page.expect_download() as download:
            page.click(f"#save-{form}")
        expect(page.locator("#done")).to_have_text(f"Saved 400 pairs as pairs.{form}.")
        assert download.value.suggested_filename == f"pairs.{form}"
        saved = download.value.path().read_text(encoding="utf-8")
        assert saved == page.evaluate("navigator.clipboard.readText()") + "\n"
    page.fill("#query", "no text has this")
    expect(page.locator("#done")).to_have_text("")
    page.click("#copy-tsv")
    expect(page.locator("#done")).to_have_text("Copied 0 pairs.")
    assert page.evaluate("navigator.clipboard.readText()") == lines[0]


@needs_browser
@pytest.mark.parametrize("several", [True, False])
def test_copies_keep_scores_under_any_name(open_report, several):
    names = ["note", "reference", "id", "pair", "words", "same", "candidate", "group language"]
    names += ["1", "__proto__"]  # special names of fields in JavaScript
    scores = {name: np.array([i / 16]) for i, name in enumerate(names)}
    texts = {name: [f"text {name}"] for name in names} if several else {"": ["b"]}
    groups = {"language": ["go"]}
    same = dict.fromkeys(names if several else ["note"], np.ones(1))
    report = open_report(ScoredPairs(["a"], texts, scores, same=same, ids=["key"], groups=groups))
    report.page.click("#copy-json")
    expect(report.page.locator("#done")).to_have_text("Copied 1 pair.")
    (record,) = json.loads(report.page.evaluate("navigator.clipboard.readText()"))
    assert (record["pair"], record["id"], record["reference"]) == (1, "key", "a")
    assert record["same note" if several else "same"] == 1
    assert [record[f"score {name}"] for name in names] == [i / 16 for i in range(len(names))]


@needs_browser
def test_a_file_can_be_read_for_a_while_after_the_click(page):
    save = """() => {
      const revoked = [], later = [];
      URL.revokeObjectURL = (href) => revoked.push(href);
      window.setTimeout = (task) => later.push(task);
      document.getElementById("save-tsv").click();
      const early = revoked.length;
      later.forEach((task) => task());
      return [early, revoked.length];
    }"""
    with page.expect_download():
        assert page.evaluate(save) == [0, 1]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_print_is_dark_on_white_with_marked_words(page, scheme):
    page.emulate_media(media="print", color_scheme=scheme)
    colours = "({ color, backgroundColor, printColorAdjust }) => [color, backgroundColor, printColorAdjust]"
    styles = [f"({colours})(getComputedStyle(document.querySelector('{one}')))" for one in ("body", "mark")]
    body, mark = (page.evaluate(style) for style in styles)
    assert body[:2] == ["rgb(34, 34, 34)", "rgb(255, 255, 255)"]
    assert mark[1:] == ["rgb(255, 227, 179)", "exact"]


@needs_browser
def test_a_print_has_all_columns_and_says_which_rows_it_has(page, run):
    page.select_option("#group", label="language: go")
    page.fill("#query", "name")
    count = "document.querySelectorAll('.pairs tbody tr').length"
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.rowsInPrint = {count} }})")
    page.pdf(format="A4")
    n = int(page.inner_text("#status").split()[0])
    assert page.evaluate("rowsInPrint") == min(n, 100) > 25
    assert page.evaluate(count) == 25
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 900})  # an A4 page without its margins
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    wide = "[...document.querySelectorAll('main, .wide')].filter((box) => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{wide}.length") == 0
    order = "Order: worst first (lowest scores). Search: name."
    expect(page.locator("#printed")).to_have_text(
        f"Show: all pairs. Group: language: go. {order} Pairs 1 to {min(n, 100)} of {n}."
    )
    assert page.locator("main button:visible").all_inner_texts() == [
        "pair",
        "score",
        "rouge-l",
        "same",
        "words",
    ]
    assert "pairs are here" not in page.inner_text("main")
