"""The address of a report in Chromium: it stores the reader's choices, and can link to a pair."""

import numpy as np
from playwright.sync_api import expect

from simllm.analysis.score_report import ScoredPairs
from tests.browser import needs_browser


@needs_browser
def test_a_reload_and_a_link_keep_the_filters_and_the_search(page, shown):
    page.select_option("#filter", label="meaning may have changed")
    page.select_option("#order", label="score rouge-l, highest first")
    page.select_option("#group", label="language: go")
    page.fill("#query", "name & user")
    page.fill("#query", "name")
    page.locator(".pairs tbody tr a").first.click()
    status = page.inner_text("#status")
    page.reload()
    expect(page.locator("#status")).to_have_text(status)
    assert page.locator("select option:checked").all_inner_texts() == [
        "meaning may have changed", "score rouge-l, highest first", "language: go",
    ]  # fmt: skip
    assert page.input_value("#query") == "name"
    expect(page.locator(".pairs tbody tr").first).to_have_class("chosen")
    page.evaluate("location.hash = 'search=item+123&group=no+group&show=nothing'")
    expect(page.locator("#status")).to_have_text("1 of 400 pairs")
    page.fill("#query", "")
    assert page.url == shown.requests[0]


@needs_browser
def test_the_link_to_the_notes_keeps_the_choices_in_the_address(page):
    page.select_option("#group", label="language: go")
    page.locator(".pairs tbody tr a").first.click()
    address = page.evaluate("location.href")
    for _ in range(2):
        page.evaluate("scrollTo(0, 0)")
        page.get_by_role("link", name="below the table").click()
        expect(page.locator("#notes")).to_be_in_viewport()
        expect(page).to_have_url(address)


@needs_browser
def test_back_to_an_address_without_choices_shows_all_pairs(page):
    page.evaluate("location.hash = 'search=of+item'")
    expect(page.locator("#query")).to_have_value("of item")
    page.go_back()
    expect(page.locator("#status")).to_have_text("400 of 400 pairs")
    expect(page.locator("#query")).to_have_value("")


@needs_browser
def test_a_link_on_an_open_page_keeps_the_choices_that_show_its_pair(page):
    page.fill("#query", "of item")
    choices = page.evaluate("location.hash.slice(1)")
    for number, row in (
        (30, page.locator("#pair-30.chosen")),
        (5000, page.get_by_text("is not in this table")),
    ):
        page.evaluate(f"location.hash = 'pair-{number}'")
        expect(row).to_be_visible()
        expect(page.locator("#query")).to_have_value("of item")
        assert page.evaluate("location.hash") == f"#pair-{number}&{choices}"
    page.evaluate("location.hash = 'pair-1'")  # without these words
    expect(page.locator("#pair-1")).to_have_class("chosen")
    expect(page.locator("#query")).to_have_value("")


@needs_browser
def test_a_search_forgets_the_chosen_pair(page):
    page.locator(".pairs tbody tr a").first.click()
    page.fill("#query", "name")
    assert page.evaluate("location.hash") == "#search=name"
    expect(page.locator(".pairs tr.chosen")).to_have_count(0)


@needs_browser
def test_a_frame_that_refuses_an_address_has_a_working_page(open_report):
    report = open_report(ScoredPairs(["a", "b"], {"": ["a", "c"]}, {"score": np.arange(2)}))
    html = report.page.content()
    report.page.set_content("<iframe></iframe>")
    report.page.locator("iframe").evaluate("(frame, html) => { frame.srcdoc = html; }", html)
    inside = report.page.frame_locator("iframe")
    inside.locator("#query").fill("c")
    expect(inside.locator("#status")).to_have_text("1 of 2 pairs")
    inside.locator(".pairs tbody a").click()
    expect(inside.locator("#pair-2")).to_have_class("chosen")


@needs_browser
def test_an_address_with_two_slashes_is_written(open_report):
    page = open_report(ScoredPairs(["a", "b"], {"": ["a", "c"]}, {"score": np.arange(2)})).page
    page.goto(page.url.replace("file:///", "file:////"))
    page.fill("#query", "c")
    page.fill("#query", "")
    expect(page.locator("#status")).to_have_text("2 of 2 pairs")
    assert page.evaluate("location.hash") == ""


@needs_browser
def test_a_pair_is_chosen_without_a_jump(page):
    row = page.locator(".pairs tbody tr").nth(10)
    row.scroll_into_view_if_needed()
    place = page.evaluate("scrollY")
    row.locator("a").click()
    assert page.evaluate("location.hash") == "#" + row.get_attribute("id")
    assert page.evaluate("scrollY") == place
    expect(page.locator(".pairs tr.chosen")).to_have_count(1)
    expect(row).to_have_class("chosen")


@needs_browser
def test_a_link_opens_the_page_at_its_pair(page, run):
    last = int(np.argmax(run.main)) + 1  # on the last page of the table
    page.goto(page.url + f"#pair-{last}")
    page.reload()
    row = page.locator(f"#pair-{last}")
    expect(row).to_be_in_viewport()
    expect(row).to_have_class("chosen")
    page.goto(page.url.partition("#")[0] + "#pair-5000")
    expect(page.locator("#status")).to_have_text("Pair 5000 is not in this table.")


@needs_browser
def test_a_link_shows_the_top_of_its_pair_below_the_headings(page, run):
    first, *_, last = np.argsort(run.main) + 1
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{page.url}#pair-{first}")
    page.reload()
    for number in (first, last, first):
        page.evaluate(f"location.hash = 'pair-{number}'")  # on an open page
        row = page.locator(f"#pair-{number}")
        expect(row).to_be_in_viewport(ratio=1)
        heading = page.locator(".pairs thead th").first.bounding_box()
        assert row.bounding_box()["y"] >= heading["y"] + heading["height"] - 1
