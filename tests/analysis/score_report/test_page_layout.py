"""The layout of a report in Chromium: wide and narrow screens, and accessibility."""

import numpy as np
import pytest
from playwright.sync_api import expect

from simllm.analysis.score_report import ScoredPairs
from simllm.metric import SimLLM
from tests.analysis.score_report.reports import column
from tests.browser import needs_browser


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_three_worst_pairs_are_on_the_first_screen(open_report, scheme):
    n = 300
    scores = np.linspace(0.05, 1, n)
    calibration = SimLLM().calibration
    references = [f"returns the name of user {i}" for i in range(n)]
    run = ScoredPairs(references, {"": ["adds lists"] * n}, {"score": scores}, calibration=calibration)
    report = open_report(run)
    report.page.emulate_media(color_scheme=scheme)
    report.page.set_viewport_size({"width": 1280, "height": 900})
    for i in range(3):
        row = report.page.locator(".pairs tbody tr").nth(i)
        expect(row).to_be_in_viewport(ratio=1)
        assert (
            row.locator("td[data-name=note]").inner_text() == "scores like unrelated texts; no common words"
        )
    report.page.get_by_role("button", name="See pairs that score like unrelated texts").click()
    low = int(run.any_unrelated.sum())
    expect(report.page.locator("#status")).to_have_text(f"{low} of 300 pairs")
    report.page.select_option("#filter", label="all pairs")
    report.page.select_option("#order", label="best first (highest scores)")
    assert report.page.inner_text("#pair-300 td[data-name=note]") == "no common words"


@needs_browser
@pytest.mark.parametrize("width", [1100, 390])
def test_a_button_scrolls_to_the_filters_and_the_count(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_role("button", name="See pairs whose meaning may have changed").click()
    for place in ("#filter", "#query", "#status", ".pairs tbody tr:first-child a"):
        expect(page.locator(place)).to_be_in_viewport(ratio=1)


@needs_browser
def test_the_menus_show_their_texts_and_fit_beside_the_search(page):
    page.set_viewport_size({"width": 1000, "height": 800})
    boxes = [page.locator(place).bounding_box() for place in ("#filter", "#order", "#group", "#query")]
    assert len({box["y"] for box in boxes}) == 1
    cut = """[...document.querySelectorAll('select')].flatMap((menu) => {
      const pen = document.createElement('canvas').getContext('2d');
      pen.font = getComputedStyle(menu).font;
      const space = menu.clientWidth - 30; // without the padding and the arrow
      return [...menu.options].map(({ text }) => text).filter((text) => pen.measureText(text).width > space);
    })"""
    assert page.evaluate(cut) == []


@needs_browser
def test_the_headings_of_the_table_stay_in_view(page):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator(".pairs tbody tr").nth(20).scroll_into_view_if_needed()
    head = page.get_by_role("button", name="rouge-l")
    expect(head).to_be_in_viewport()
    head.click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("rouge-l")


@needs_browser
def test_a_small_screen_does_not_scroll_sideways(page):
    page.set_viewport_size({"width": 240, "height": 320})
    assert page.evaluate("document.documentElement.scrollWidth") <= 240


@needs_browser
@pytest.mark.parametrize("width", [1100, 390])
def test_long_ids_and_names_of_groups_leave_space_for_the_texts(open_report, width):
    texts, names = ["returns the name of the user"] * 2, ["0123456789abcdef" * 16, "0123456789abcdef" * 4]
    run = ScoredPairs(texts, {"": texts}, {"score": np.ones(2)}, ids=names, groups={"commit": names})
    page = open_report(run).page
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        page.set_viewport_size({"width": width if media == "screen" else 703, "height": 900})
        wide = (
            "[...document.querySelectorAll('main, .wide')].filter((box) => box.scrollWidth > box.clientWidth)"
        )
        assert page.evaluate(f"{wide}.length") == 0
    assert page.locator(".pairs td:first-child").first.bounding_box()["width"] < 200


@needs_browser
def test_a_phone_can_sort_by_a_column(page, run):
    page.set_viewport_size({"width": 390, "height": 900})
    page.get_by_role("button", name="rouge-l").click()
    assert column(page, "rouge-l") == pytest.approx(np.sort(run.scores["rouge-l"])[:25], abs=6e-4)


@needs_browser
def test_a_phone_shows_all_columns_of_the_groups(page):
    page.set_viewport_size({"width": 390, "height": 900})
    region = page.get_by_role("region", name="Groups by language")
    assert region.evaluate("region => region.scrollWidth <= region.clientWidth")
    assert "verdict" in region.locator("td[data-name=verdict]").first.evaluate(
        "cell => getComputedStyle(cell, '::before').content"
    )


@needs_browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 1100), ("light", 390)])
def test_the_page_has_no_serious_fault_of_accessibility(page, shown, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert shown.faults() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
