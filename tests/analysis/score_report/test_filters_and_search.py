"""The table of a report in Chromium: sorting, filters, groups, search and pages."""

import dataclasses
import re
import time

import numpy as np
import pytest
from playwright.sync_api import expect

from simllm.analysis.score_report import ScoredPairs
from simllm.analysis.score_report.pairs import MOST
from tests.analysis.score_report.reports import column, scored_pairs
from tests.browser import needs_browser


@needs_browser
def test_the_keyboard_keeps_its_place_on_the_last_page(page):
    page.select_option("#group", label="language: go")
    while page.locator("#next:enabled").count():
        page.locator("#next").press("Enter")
    assert page.evaluate("document.activeElement.id") == "back"
    page.keyboard.press("Enter")
    expect(page.locator("#page")).to_have_text(re.compile(r"page (\d+) of (?!\1$)\d+"))


@needs_browser
def test_another_page_of_the_table_begins_at_its_top(page):
    for button in ("#next", "#back"):
        page.locator(button).click()
        expect(page.locator(".pairs tbody tr").first).to_be_in_viewport()


@needs_browser
def test_a_column_sorts_up_and_down(page, run):
    head = page.get_by_role("button", name="rouge-l")
    head.click()
    assert column(page, "rouge-l") == pytest.approx(np.sort(run.scores["rouge-l"])[:25], abs=6e-4)
    head.press("Enter")
    assert column(page, "rouge-l") == pytest.approx(-np.sort(-run.scores["rouge-l"])[:25], abs=6e-4)
    expect(page.locator("th[aria-sort=descending]")).to_have_text("rouge-l")
    expect(page.locator("#order option:checked")).to_have_text("score rouge-l, highest first")
    page.select_option("#order", label="worst first (lowest scores)")
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("score")
    expect(page.locator("th[aria-sort]")).to_have_count(1)
    page.select_option("#order", label="other words, but a high score")
    expect(page.locator("th[aria-sort]")).to_have_count(0)


@needs_browser
def test_views_groups_and_the_search_filter_pairs(page, run):
    page.select_option("#filter", label="meaning may have changed")
    changed = int(run.any_changed.sum())
    expect(page.locator("#status")).to_have_text(f"{changed} of 400 pairs")
    page.select_option("#group", label="language: go")
    both = int((run.any_changed & (np.array(run.groups["language"]) == "go")).sum())
    assert 0 < both < changed
    expect(page.locator("#status")).to_have_text(f"{both} of 400 pairs")
    page.select_option("#filter", label="all pairs")
    page.select_option("#group", label="words in the reference: 0 to 6")
    expect(page.locator("#status")).to_have_text("400 of 400 pairs")
    page.select_option("#group", label="all")
    page.fill("#query", "OF ITEM 123")
    expect(page.locator("#status")).to_have_text("1 of 400 pairs")
    page.fill("#query", "key 77")
    assert page.locator(".pairs tbody tr").first.get_attribute("id") == "pair-78"
    page.fill("#query", "no text has this")
    expect(page.locator("#status")).to_have_text("0 of 400 pairs")


@needs_browser
def test_a_button_shows_the_worst_pairs_after_any_order_and_filter(page, run):
    page.get_by_role("button", name="rouge-l").click()
    page.select_option("#filter", label="meaning may have changed")
    page.select_option("#group", label="language: go")
    page.fill("#query", "name")
    page.get_by_role("button", name="See the worst pairs").click()
    expect(page.locator("#status")).to_have_text("400 of 400 pairs")
    expect(page.locator("#order option:checked")).to_have_text("worst first (lowest scores)")
    assert column(page, "score") == pytest.approx(np.sort(run.main)[:25], abs=6e-4)
    assert (page.input_value("#group"), page.input_value("#query")) == ("", "")


@needs_browser
def test_a_number_finds_the_pair_of_this_number_first(page):
    page.fill("#query", "54")
    numbers = page.locator(".pairs td[data-name=pair] a").all_inner_texts()
    assert numbers[0] == "54 (key 53)"
    assert all("54" in row for row in page.locator(".pairs tbody tr").all_inner_texts())
    assert "155 (key 154)" in numbers  # its id holds 54
    assert "254 (key 253)" not in numbers
    for query in ("#54", "pair 54", "Pair #54"):
        page.fill("#query", query)
        assert page.locator(".pairs td[data-name=pair] a").first.inner_text() == "54 (key 53)"


@needs_browser
def test_the_exact_id_comes_first(open_report):
    ids = ["x007", "a", "007", "b", "c", "d", "e"]
    run = ScoredPairs(["a"] * 7, {"": ["b"] * 7}, {"score": np.arange(7) / 7}, ids=ids)
    page = open_report(run).page
    page.fill("#query", "007")
    assert page.locator(".pairs td[data-name=pair] a").all_inner_texts() == ["3 (007)", "7 (e)", "1 (x007)"]


@needs_browser
@pytest.mark.parametrize("query", [" " * 20_000 + "xyz", "1" * 20_000, "(" * 20_000])
def test_a_very_long_search_takes_no_time(open_report, query):
    page = open_report(scored_pairs(5_000)).page
    page.focus("#query")
    start = time.monotonic()
    page.keyboard.insert_text(query)
    expect(page.locator("#status")).to_contain_text("0 of 5,000 pairs")
    assert time.monotonic() - start < 2


@needs_browser
def test_the_usual_spelling_finds_cleaned_texts(open_report):
    texts = ["uses it ( e . g . ncstream )", "/ * ( non - javadoc )", "reads e - mail", "f ( x )"]
    run = ScoredPairs(texts, {"": ["a"] * 4}, {"score": np.arange(4) / 4})
    report = open_report(run)
    for query, number in (("e.g.", 1), ("Non-Javadoc", 2), ("e - mail", 3), ("e-mail", 3), ("f(x)", 4)):
        report.page.fill("#query", query)
        assert report.page.locator(".pairs td[data-name=pair] a").all_inner_texts() == [str(number)]


@needs_browser
def test_surprising_pairs_have_words_and_a_high_or_a_low_score(open_report):
    references = ["{", "adds lists", "adds lists", "adds lists", "adds lists"]
    candidates = ["combines arrays", "...", "combines arrays", "sums arrays", "adds lists"]
    scores = {"score": np.array([0.9, 0.9, 0.8, 0.35, 0.3])}
    run = ScoredPairs(references, {"": candidates}, scores, same={"score": np.ones(5)})
    report = open_report(run)
    assert "There, a score is high from .4." in report.page.inner_text("main")
    for order, numbers in (
        ("other words, but a high score", ["3"]),
        ("common words, but a low score", ["5", "4"]),
    ):
        report.page.select_option("#order", label=order)
        assert report.page.locator(".pairs td[data-name=pair] a").all_inner_texts() == numbers
        leaves_out = "this order leaves out the others"
        expect(report.page.locator("#status")).to_have_text(f"{len(numbers)} of 5 pairs; {leaves_out}")


@needs_browser
def test_filters_show_long_texts_and_all_flagged_pairs(open_report):
    run = ScoredPairs(
        ["a", "b", "", "d"],
        {"": ["a", "b", "c", "d"]},
        {"score": np.arange(4) / 4},
        long_texts=[1],
    )
    report = open_report(run)
    for name, numbers in (("a text is too long", ["2"]), ("all flagged pairs", ["2", "3"])):
        report.page.select_option("#filter", label=name)
        assert report.page.locator(".pairs td[data-name=pair] a").all_inner_texts() == numbers
    assert report.page.inner_text("#pair-2 td[data-name=note]") == "a text is too long for the model"
    expect(report.page.locator("#flagged")).to_have_text(
        '"all flagged pairs" joins these filters: "a text is empty", "a text is too long".'
    )


@needs_browser
def test_without_matches_a_button_clears_the_filters(page):
    expect(page.locator("#none")).to_be_hidden()
    page.get_by_role("button", name="rouge-l").click()
    page.select_option("#filter", label="a text is empty")
    page.fill("#query", "no text has this")
    expect(page.locator("#none")).to_contain_text("No pair matches.")
    page.get_by_role("button", name="Clear filters and search").click()
    expect(page.locator("#status")).to_have_text("400 of 400 pairs")
    expect(page.locator("#none")).to_be_hidden()


@needs_browser
def test_the_clear_button_leaves_an_order_without_pairs(open_report):
    run = ScoredPairs(["a", "b"], {"": ["a", "b"]}, {"score": np.ones(2)}, same={"score": np.ones(2)})
    report = open_report(run)
    report.page.select_option("#order", label="common words, but a low score")
    expect(report.page.locator("#status")).to_contain_text("0 of 2 pairs")
    report.page.get_by_role("button", name="Clear filters and search").click()
    expect(report.page.locator("#status")).to_have_text("2 of 2 pairs")
    expect(report.page.locator("#order option:checked")).to_have_text("worst first (lowest scores)")


@needs_browser
def test_orders_have_distinct_names(open_report):
    names = ["pair", "words", "same", "score"]
    scores = {name: np.array([0.1, 0.2]) for name in names}
    texts = {name: ["a", "b"] for name in names}
    run = ScoredPairs(["a", "b"], texts, scores)
    for one in (run, dataclasses.replace(run, candidates={"": ["a", "b"]}, same={"pair": np.ones(2)})):
        orders = open_report(one).page.locator("#order option").all_inner_texts()
        assert len({*orders}) == len(orders) > 10


@needs_browser
def test_a_single_pair_is_counted_in_the_singular(open_report):
    report = open_report(ScoredPairs(["a"], {"": ["b"]}, {"score": np.ones(1)}))
    expect(report.page.locator("#status")).to_have_text("1 of 1 pair")
    report.page.click("#copy-json")
    expect(report.page.locator("#done")).to_have_text("Copied 1 pair.")


@needs_browser
def test_a_hundred_thousand_pairs_stay_usable(open_report, tmp_path):
    run = scored_pairs(100_000)
    report = open_report(run)
    size = (tmp_path / "page.html").stat().st_size
    assert size < 3e6
    of = "of 5,000 pairs (a sample of 100,000)"
    expect(report.page.locator("#status")).to_have_text(f"{MOST:,} {of}")
    assert column(report.page, "score") == pytest.approx(np.sort(run.main)[:25], abs=6e-4)
    report.page.fill("#query", "name of item 12")
    expect(report.page.locator("#status")).not_to_have_text(f"{MOST:,} {of}")
    timing = report.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"\n{size:,} bytes, loaded in {timing:.0f} ms")
