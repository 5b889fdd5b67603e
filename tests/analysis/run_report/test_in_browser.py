"""The page of a report in Chromium: what a reader can do with it."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from simllm.analysis.comparison import compare_scores
from simllm.analysis.run_report import ScoredRun, render_report
from simllm.analysis.run_report.pair_sample import MOST
from simllm.metric import SimLLM
from tests.browser import Visit, needs_browser, visit

HOSTILE = [
    "</script><script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\u202eright to left \u05d0\u05d1\u05d2 \u2028 next line",
    "word " * 10_000,
    "'; DROP TABLE pairs; --\t\r\n",
]


def scored_run(n):
    """Return n scored pairs; the scores of one language are lower, and the first texts are hostile."""
    random = np.random.default_rng(0)
    languages = random.choice(["go", "java", "python"], n).tolist()
    references = [f"returns the name of user {i % 1000}" for i in range(n)]
    candidates = [f"gets the name of item {i % 700}" for i in range(n)]
    candidates[: len(HOSTILE)] = HOSTILE
    references[-1], candidates[-1] = "", ""
    scores = np.clip(random.normal(0.5, 0.2, n) - 0.1 * (np.array(languages) == "go"), -0.2, 0.99)
    same = random.uniform(0, 1, n)
    return ScoredRun(
        references,
        {"": candidates},
        {"score": scores, "rouge-l": np.clip(scores + random.normal(0, 0.1, n), 0, 1)},
        same={"score": same},
        changed={"score": (scores > 0.5) & (same < 0.05)},
        ids=[f"key {i}" for i in range(n)],
        groups={"language": languages},
    )


@pytest.fixture(scope="module")
def run():
    return scored_run(400)


@pytest.fixture(scope="module")
def shown(run, tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "page.html"
    page.write_text(render_report(run, "simllm score"), encoding="utf-8")
    with visit(page.as_uri(), permissions=["clipboard-read", "clipboard-write"]) as shown:
        yield shown
        assert shown.errors == []
        assert shown.requests == [page.as_uri()]  # nothing else is loaded


@pytest.fixture
def page(shown):
    shown.page.goto(shown.requests[0])
    shown.requests.pop()
    return shown.page


def another_page(shown, file):
    """Open another page in the same browser."""
    other = Visit(shown.page.context.new_page())
    other.page.goto(file.as_uri())
    return other


def column(page, name):
    """Return the numbers in a column of the visible rows."""
    return [float(text) for text in page.locator(f".pairs td[data-name='{name}']").all_inner_texts()]


@needs_browser
def test_the_lowest_scores_come_first_with_marked_words(page, run):
    assert column(page, "score") == pytest.approx(np.sort(run.main)[:25], abs=6e-4)
    page.get_by_role("button", name="See the worst pairs").click()
    expect(page.locator(".pairs tbody tr").nth(2)).to_be_in_viewport()
    row = page.locator(".pairs tbody tr", has_text="gets the name of item").first
    assert row.locator("td[data-name=candidate] mark").all_inner_texts()[:2] == ["gets", "item"]
    assert "distinct reference words missing" in row.inner_text()


@needs_browser
def test_words_that_differ_in_a_vowel_sign_are_marked(shown, tmp_path):
    run = ScoredRun(["\u0915\u0940 a"], {"": ["\u0915\u093f a"]}, {"score": np.ones(1)})
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    assert other.page.locator("td mark").all_inner_texts() == ["\u0915\u093f", "\u0915\u0940"]
    other.page.close()


@needs_browser
def test_the_note_on_common_words_agrees_with_their_share(shown, tmp_path):
    references = ["\u00c9crit le nom .", "\u0391\u03a3 \u2014 .", "\u540d\u524d .", "a\x1cb \u0130.", "... !"]
    candidates = ["\u00e9crit tout .", "\u03b1\u03c2 \u2014 .", "\u8aad\u3080 .", "a b i .", "reads !"]
    run = ScoredRun(references, {"": candidates}, {"score": np.arange(5) / 5})
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    notes = other.page.locator("td[data-name=note]").all_inner_texts()
    none = [("no common words" in note or "reference has no words" in note) for note in notes]
    assert none == [share == 0 for share in column(other.page, "words")] == [False, False, True, True, True]
    other.page.close()


@needs_browser
def test_the_keyboard_keeps_its_place_on_the_last_page(page):
    page.select_option("#group", label="language: go")
    while page.locator("#next:enabled").count():
        page.locator("#next").press("Enter")
    assert page.evaluate("document.activeElement.id") == "back"
    page.keyboard.press("Enter")
    expect(page.locator("#page")).to_have_text(re.compile(r"page (\d+) of (?!\1$)\d+"))


@needs_browser
def test_a_column_sorts_up_and_down(page, run):
    head = page.get_by_role("button", name="rouge-l")
    head.click()
    assert column(page, "rouge-l") == pytest.approx(np.sort(run.scores["rouge-l"])[:25], abs=6e-4)
    head.press("Enter")
    assert column(page, "rouge-l") == pytest.approx(-np.sort(-run.scores["rouge-l"])[:25], abs=6e-4)
    expect(page.locator("th[aria-sort=descending]")).to_have_text("rouge-l")
    expect(page.locator("#order option:checked")).to_have_text("rouge-l, highest first")
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
@pytest.mark.parametrize("width", [1100, 390])
def test_a_button_scrolls_to_the_filters_and_the_count(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_role("button", name="See pairs whose meaning may have changed").click()
    for place in ("#filter", "#query", "#status", ".pairs tbody tr:first-child a"):
        expect(page.locator(place)).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1100, "height": 900})


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
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
def test_a_small_screen_does_not_scroll_sideways(page):
    page.set_viewport_size({"width": 240, "height": 320})
    assert page.evaluate("document.documentElement.scrollWidth") <= 240
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
def test_a_reload_and_a_link_keep_the_filters_and_the_search(page, shown):
    page.select_option("#filter", label="meaning may have changed")
    page.select_option("#order", label="rouge-l, highest first")
    page.select_option("#group", label="language: go")
    page.fill("#query", "name & user")
    page.fill("#query", "name")
    page.locator(".pairs tbody tr a").first.click()
    status = page.inner_text("#status")
    page.reload()
    shown.requests[:] = shown.requests[:1]
    expect(page.locator("#status")).to_have_text(status)
    assert page.locator("select option:checked").all_inner_texts() == [
        "meaning may have changed", "rouge-l, highest first", "language: go",
    ]  # fmt: skip
    assert page.input_value("#query") == "name"
    expect(page.locator(".pairs tbody tr").first).to_have_class("chosen")
    page.evaluate("location.hash = 'search=item+123&group=no+group&show=nothing'")
    expect(page.locator("#status")).to_have_text("1 of 400 pairs")
    page.fill("#query", "")
    assert page.url == shown.requests[0]


@needs_browser
def test_another_page_of_the_table_begins_at_its_top(page):
    for button in ("#next", "#back"):
        page.locator(button).click()
        expect(page.locator(".pairs tbody tr").first).to_be_in_viewport()


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
def test_the_usual_spelling_finds_cleaned_texts(shown, tmp_path):
    texts = ["uses it ( e . g . ncstream )", "/ * ( non - javadoc )", "reads e - mail", "f ( x )"]
    run = ScoredRun(texts, {"": ["a"] * 4}, {"score": np.arange(4) / 4})
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    for query, number in (("e.g.", 1), ("Non-Javadoc", 2), ("e - mail", 3), ("e-mail", 3), ("f(x)", 4)):
        other.page.fill("#query", query)
        assert other.page.locator(".pairs td[data-name=pair] a").all_inner_texts() == [str(number)]
    other.page.close()


@needs_browser
def test_surprising_pairs_have_words_and_a_high_or_a_low_score(shown, tmp_path):
    references = ["{", "adds lists", "adds lists", "adds lists", "adds lists"]
    candidates = ["combines arrays", "...", "combines arrays", "sums arrays", "adds lists"]
    scores = {"score": np.array([0.9, 0.9, 0.8, 0.4, 0.3])}
    run = ScoredRun(references, {"": candidates}, scores, same={"score": np.ones(5)})
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    assert "There, a score is high from .5." in other.page.inner_text("main")
    for order, numbers in (
        ("other words, but a high score", ["3"]),
        ("common words, but a low score", ["5", "4"]),
    ):
        other.page.select_option("#order", label=order)
        assert other.page.locator(".pairs td[data-name=pair] a").all_inner_texts() == numbers
        leaves_out = "this order leaves out the others"
        expect(other.page.locator("#status")).to_have_text(f"{len(numbers)} of 5 pairs; {leaves_out}")
    other.page.close()


@needs_browser
def test_filters_show_long_texts_and_all_flagged_pairs(shown, tmp_path):
    run = ScoredRun(
        ["a", "b", "", "d"],
        {"": ["a", "b", "c", "d"]},
        {"score": np.arange(4) / 4},
        long_texts=[1],
    )
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    for name, numbers in (("a text is too long", ["2"]), ("all flagged pairs", ["2", "3"])):
        other.page.select_option("#filter", label=name)
        assert other.page.locator(".pairs td[data-name=pair] a").all_inner_texts() == numbers
    assert other.page.inner_text("#pair-2 td[data-name=note]") == "a text is too long for the model"
    expect(other.page.locator("#flagged")).to_have_text(
        '"all flagged pairs" joins these filters: "a text is empty", "a text is too long".'
    )
    other.page.close()


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
def test_a_link_opens_the_page_at_its_pair(page, shown, run):
    last = int(np.argmax(run.main)) + 1  # on the last page of the table
    page.goto(page.url + f"#pair-{last}")
    page.reload()
    shown.requests[:] = shown.requests[:1]
    row = page.locator(f"#pair-{last}")
    expect(row).to_be_in_viewport()
    expect(row).to_have_class("chosen")
    page.goto(page.url.partition("#")[0] + "#pair-5000")
    expect(page.locator("#status")).to_have_text("Pair 5000 is not in this table.")


@needs_browser
def test_a_link_shows_the_top_of_its_pair_below_the_headings(shown, run, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    first, *_, last = np.argsort(run.main) + 1
    other = Visit(shown.page.context.new_page()).page
    other.set_viewport_size({"width": 1280, "height": 900})
    other.goto(f"{page.as_uri()}#pair-{first}")
    for number in (first, last, first):
        other.evaluate(f"location.hash = 'pair-{number}'")  # on an open page
        row = other.locator(f"#pair-{number}")
        expect(row).to_be_in_viewport(ratio=1)
        heading = other.locator(".pairs thead th").first.bounding_box()
        assert row.bounding_box()["y"] >= heading["y"] + heading["height"] - 1
    other.close()


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
    page.select_option("#group", label="language: go")
    expect(page.locator("#done")).to_have_text("")


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
@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 1100), ("light", 390)])
def test_the_page_has_no_serious_fault_of_accessibility(page, shown, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert shown.faults() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
def test_a_phone_can_sort_by_a_column(page, run):
    page.set_viewport_size({"width": 390, "height": 900})
    page.get_by_role("button", name="rouge-l").click()
    assert column(page, "rouge-l") == pytest.approx(np.sort(run.scores["rouge-l"])[:25], abs=6e-4)
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_print_is_dark_on_white_with_marked_words(page, scheme):
    page.emulate_media(media="print", color_scheme=scheme)
    colours = "({ color, backgroundColor, printColorAdjust }) => [color, backgroundColor, printColorAdjust]"
    styles = [f"({colours})(getComputedStyle(document.querySelector('{one}')))" for one in ("body", "mark")]
    body, mark = (page.evaluate(style) for style in styles)
    assert body[:2] == ["rgb(34, 34, 34)", "rgb(255, 255, 255)"]
    assert mark[1:] == ["rgb(255, 227, 179)", "exact"]
    page.emulate_media(media="screen", color_scheme="light")


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
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
def test_a_hundred_thousand_pairs_stay_usable(shown, tmp_path):
    run = scored_run(100_000)
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    assert page.stat().st_size < 3e6
    other = another_page(shown, page)
    of = "of 5,000 pairs (a sample of 100,000)"
    expect(other.page.locator("#status")).to_have_text(f"{MOST:,} {of}")
    assert column(other.page, "score") == pytest.approx(np.sort(run.main)[:25], abs=6e-4)
    other.page.fill("#query", "name of item 12")
    expect(other.page.locator("#status")).not_to_have_text(f"{MOST:,} {of}")
    timing = other.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"\n{page.stat().st_size:,} bytes, loaded in {timing:.0f} ms")
    assert other.errors == []


@needs_browser
def test_systems_stand_beside_each_other(shown, tmp_path):
    scores = {"first": np.array([0.2, 0.9, 0.4]), "second": np.array([0.8, 0.1, 0.4])}
    texts = {"first": ["reads a file", "adds", "x"], "second": ["opens the file", "subtracts", "x"]}
    same = {"first": np.array([1, 0.9, 1]), "second": np.array([0, 0, 0.4])}
    changed = {"first": np.zeros(3, bool), "second": np.array([True, False, False])}
    run = ScoredRun(
        ["opens a file", "adds", "y"], texts, scores, same, changed, changed_by={"second": {0: ["reads"]}}
    )
    page = tmp_path / "page.html"
    page.write_text(render_report(run, "", compare_scores(scores)), encoding="utf-8")
    other = another_page(shown, page)
    other.page.select_option("#order", label="first most above second")
    row = other.page.locator(".pairs tbody tr").first
    assert row.get_attribute("id") == "pair-2"
    assert "first: .900, same .900\nadds\nsecond: .100, same .000\nsubtracts" in row.inner_text()
    other.page.select_option("#filter", label="meaning may have changed")
    expect(other.page.locator("#status")).to_have_text("1 of 3 pairs")
    assert other.page.locator(".pairs .cause").count() == 0  # "reads" is not in the texts of "second"
    note = 'second: meaning may have changed; second changed by: "reads"'
    assert other.page.inner_text(".pairs td.note") == note
    assert "distinct reference words" not in other.page.inner_text("main")
    assert other.faults() == []
    assert other.errors == []


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_three_worst_pairs_are_on_the_first_screen(shown, tmp_path, scheme):
    n = 300
    scores = np.linspace(0.05, 1, n)
    calibration = SimLLM().calibration
    references = [f"returns the name of user {i}" for i in range(n)]
    run = ScoredRun(references, {"": ["adds lists"] * n}, {"score": scores}, calibration=calibration)
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    other.page.emulate_media(color_scheme=scheme)
    other.page.set_viewport_size({"width": 1280, "height": 900})
    for i in range(3):
        row = other.page.locator(".pairs tbody tr").nth(i)
        expect(row).to_be_in_viewport(ratio=1)
        assert (
            row.locator("td[data-name=note]").inner_text() == "scores like unrelated texts; no common words"
        )
    other.page.get_by_role("button", name="See pairs that score like unrelated texts").click()
    low = int(run.any_unrelated.sum())
    expect(other.page.locator("#status")).to_have_text(f"{low} of 300 pairs")
    other.page.select_option("#filter", label="all pairs")
    other.page.select_option("#order", label="best first (highest scores)")
    assert other.page.inner_text("#pair-300 td[data-name=note]") == "no common words"
    assert other.errors == []
    other.page.close()


@needs_browser
def test_a_flagged_pair_names_the_words_that_changed_the_meaning(shown, tmp_path):
    run = ScoredRun(
        ["the list is empty", "opens the file", "reads a line"],
        {"": ["the list is not empty", "closes the file", "writes a line"]},
        {"score": np.array([0.9, 0.8, 0.7])},
        same={"score": np.zeros(3)},
        changed={"score": np.ones(3, bool)},
        changed_by={"score": {0: ["not"], 1: []}},
    )
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    other.page.get_by_role("button", name="See pairs whose meaning may have changed").click()
    expect(other.page.locator("#filter option:checked")).to_have_text("meaning may have changed")
    notes = [text.split("; ") for text in other.page.locator("td.note").all_inner_texts()]
    assert notes[0] == ["meaning may have changed", 'changed by: "not"']
    assert other.page.locator("#pair-1 mark > strong.cause").all_inner_texts() == ["not"]
    assert other.page.locator(".pairs .cause").count() == 1
    expect(other.page.locator(".key")).to_contain_text(
        "Without these words, the same meaning is more probable"
    )
    assert notes[1][:2] == ["meaning may have changed", "changed by no single word"]
    assert notes[2] == ["meaning may have changed", "1 of 3 distinct reference words missing"]
    other.page.click("#copy-json")
    expect(other.page.locator("#done")).to_have_text("Copied 3 pairs.")
    records = json.loads(other.page.evaluate("navigator.clipboard.readText()"))
    assert [record["changed by"] for record in records] == ["not", "", ""]
    assert other.faults() == []
    other.page.close()


@needs_browser
def test_changing_words_are_marked_beside_punctuation_accents_and_capitals(shown, tmp_path):
    run = ScoredRun(
        ["Caf\u00e9 \u2264 bar (open)!"],
        {"": ["a < re-open caf\u00e9s"]},
        {"score": np.ones(1)},
        same={"score": np.zeros(1)},
        changed={"score": np.ones(1, bool)},
        changed_by={"score": {0: ["cafe", "open", "<"]}},
    )
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    marked = other.page.locator(".pairs .cause").all_inner_texts()
    assert marked == ["<", "re-open", "Caf\u00e9", "(open)!"]
    other.page.close()


@needs_browser
def test_long_texts_are_folded_but_found_and_printed(shown, tmp_path):
    long = " ".join(f"word{i}" for i in range(100))
    run = ScoredRun([long, "short"], {"": ["a", "b"]}, {"score": np.array([0.1, 0.2])})
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    end = other.page.get_by_text("word99", exact=True)
    expect(other.page.get_by_text("word59")).to_be_visible()
    expect(end).to_be_hidden()
    other.page.emulate_media(media="print")
    expect(end).to_be_visible()
    other.page.emulate_media(media="screen")
    other.page.get_by_role("button", name="show all 100 words").click()
    expect(end).to_be_visible()
    other.page.get_by_role("button", name="show less").click()
    expect(end).to_be_hidden()
    other.page.fill("#query", "word99")
    expect(end).to_be_visible()
    expect(other.page.locator("#status")).to_have_text("1 of 2 pairs")
    assert other.faults() == []
    other.page.close()


@needs_browser
def test_the_headings_of_the_table_stay_in_view(page):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator(".pairs tbody tr").nth(20).scroll_into_view_if_needed()
    head = page.get_by_role("button", name="rouge-l")
    expect(head).to_be_in_viewport()
    head.click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("rouge-l")
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
def test_a_phone_shows_all_columns_of_the_groups(page):
    page.set_viewport_size({"width": 390, "height": 900})
    region = page.get_by_role("region", name="Groups by language")
    assert region.evaluate("region => region.scrollWidth <= region.clientWidth")
    assert "verdict" in region.locator("td[data-name=verdict]").first.evaluate(
        "cell => getComputedStyle(cell, '::before').content"
    )
    page.set_viewport_size({"width": 1100, "height": 900})


@needs_browser
def test_no_word_of_a_cut_text_counts_as_missing(shown, tmp_path):
    long = "opens the file " * 200 + "last"
    run = ScoredRun(["last", "last"], {"": [long, "first"]}, {"score": np.array([0.1, 0.2])})
    page = tmp_path / "page.html"
    page.write_text(render_report(run, ""), encoding="utf-8")
    other = another_page(shown, page)
    assert other.page.locator("#pair-1 mark").count() == 0
    assert (
        other.page.inner_text("#pair-1 td[data-name=note]")
        == "cut after 2,000 characters, words not compared"
    )
    assert other.page.locator("#pair-2 mark").all_inner_texts() == ["first", "last"]
    other.page.close()


@needs_browser
def test_a_single_pair_is_counted_in_the_singular(shown, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(render_report(ScoredRun(["a"], {"": ["b"]}, {"score": np.ones(1)}), ""), encoding="utf-8")
    other = another_page(shown, page)
    expect(other.page.locator("#status")).to_have_text("1 of 1 pair")
    other.page.click("#copy-json")
    expect(other.page.locator("#done")).to_have_text("Copied 1 pair.")
    other.page.close()
