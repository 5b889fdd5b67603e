"""The page of the playground in Chromium: it scores as Python does, and sends nothing anywhere."""

import itertools
import json
import random
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from playwright.sync_api import expect

from simllm.analysis.explanation import explain
from simllm.metric import SimLLM
from tests.browser import needs_browser, visit
from tests.command import run
from tests.conftest import ROOT

HOSTILE = [
    "</script><script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\u202eright to left \u05d0\u05d1\u05d2 \u2260 =\u0323\u0338 \U0001fbf3 \ufb01 \u00bd na\u00efve",
    "returns the value of the list " * 2000,
    "e\u0301x" * 4000,
]


@pytest.fixture(scope="module")
def metric():
    return SimLLM(long="whole")  # as the playground does


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve the exported playground in a subfolder, with Python's file server; yield its address."""
    root = tmp_path_factory.mktemp("www")
    assert run("export", "--web", root / "below" / "a path").returncode == 0
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        port = server.stdout.readline().split()[5]
        yield f"http://127.0.0.1:{port}/below/a%20path/"
        server.terminate()


@pytest.fixture(scope="module")
def shown(address):
    """Open the page, and wait until the model is loaded."""
    with visit(address) as shown:
        shown.page.wait_for_selector("#run:enabled", timeout=120_000)
        yield shown
        assert shown.errors == []


@pytest.fixture(scope="module")
def page(shown):
    return shown.page


@pytest.fixture(scope="module")
def texts(comments):
    """Return 1,001 texts: summaries, comments, lines of documentation and code, and a few hostile texts."""
    items = map(
        json.loads, (ROOT / "simllm" / "evaluation" / "contrast_triples.jsonl").read_text().splitlines()
    )
    summaries = [text for item in items for text in (item["rewording"], item["reference"], item["change"])]
    docs = [
        file.read_text() for folder in ("docs", "simllm") for file in sorted((ROOT / folder).rglob("*.*s"))
    ]
    docs += [file.read_text() for file in sorted(ROOT.glob("docs/*.md"))]
    lines = [line for text in docs for line in text.splitlines() if 20 < len(line) < 200]
    other = [text for text in comments if len(text) < 200] + lines
    return summaries[:700] + random.Random(0).sample(other, 301 - len(HOSTILE)) + HOSTILE


@needs_browser
def test_cleaning_and_tokens_equal_those_of_python(page, metric, texts, comments):
    noise = random.Random(0)
    marks = (
        "/*#!\"'-=_~@ :.,()<>\n\t\r\u00e9\u2028\ufb01\u0338\u00bd\U0001f600\u202e\u2212\u0301\U0001fbf1\u0903"
    )
    strange = ["".join(noise.choices(marks + "abcXYZ019", k=noise.randint(0, 60))) for _ in range(3000)]
    everything = [*texts, *comments, *strange]
    found = page.evaluate("texts => texts.map(text => scorer.tokenizer.encode(text).ids)", everything)
    expected = [list(windows[0]) for windows in metric.tokenize(everything).inputs]
    assert found == expected


@needs_browser
def test_scores_equal_those_of_python(page, metric, texts):
    pairs = list(itertools.pairwise(texts))
    # Of all kinds, with the hostile texts. The figures in docs/browser.md are those of all 1,000 pairs.
    pairs = pairs[:-5:4] + pairs[-5:]
    started = time.perf_counter()
    found = page.evaluate(
        """async (pairs) => {
            const found = [];
            for (const pair of pairs) {
                const { score, same, percentile } = await scorer.score(...pair);
                found.push([score, same, percentile]);
            }
            return found;
        }""",
        pairs,
    )
    seconds = time.perf_counter() - started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two texts are too long on purpose
        expected = metric.score(*zip(*pairs, strict=True))
    score, same, percentile = np.array(found).T
    differences = np.abs(score - expected.values).max(), np.abs(same - expected.same).max()
    print(f"\n{len(pairs)} pairs in {seconds:.1f} s; largest differences (score, same): {differences}")
    assert max(differences) < 2e-3
    assert np.abs(percentile - expected.percentiles).max() < 0.1


@needs_browser
@pytest.mark.parametrize(
    "pair",
    [
        ("Opens the file and reads its first line.", "Closes the file and reads its first line."),
        ("set the basic type the the", "sets the basic type of this type depending on the class ."),
        ("a < b", "a > b"),
    ],
)
def test_explanations_equal_those_of_python(page, metric, pair):
    sides, changing = page.evaluate(
        """async (pair) => {
            const comparison = await scorer.score(...pair);
            return [scorer.explain(comparison), await scorer.changingWords(comparison, () => true)];
        }""",
        pair,
    )
    expected = explain(metric, *pair)
    assert changing == expected.changing_words
    assert "." not in changing
    for words, side in zip(sides, (expected.candidate, expected.reference), strict=True):
        assert [(word["text"], word["match"]) for word in words] == [(word.text, word.match) for word in side]
        contributions = [word["contribution"] for word in words]
        assert contributions == pytest.approx([word.contribution for word in side], abs=1e-4)


@needs_browser
def test_typed_texts_are_scored_and_explained(page, metric):
    page.fill("#candidate", "opens the log file")
    page.fill("#reference", "closes the log file")
    score = metric.score(["opens the log file"], ["closes the log file"]).values[0]
    page.wait_for_function(
        "score => Math.abs(document.getElementById('score').textContent - score) < .0005", arg=float(score)
    )
    expect(page.locator("#note")).to_have_text(re.compile(r": opens, closes\.$"))
    assert page.inner_text("#verdict") == "No"
    expect(page.locator(".changing")).to_have_text(["opens", "closes"])
    print("\n", page.inner_text("#time"), page.inner_text("#model"))


@needs_browser
def test_keyboard_reaches_everything(page):
    page.focus("#candidate")
    names = []
    for _ in range(8):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert names[0] == "reference"
    assert "nothing in common" in names
    assert "pairs" in names


@needs_browser
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_as_text(page, text):
    page.fill("#candidate", text)
    page.fill("#reference", "returns the value of the list")
    expect(page.locator("#result")).to_be_visible()
    assert page.locator("#words script, #words img, #contributions script, #contributions img").count() == 0
    assert page.title() == "simllm playground"


@needs_browser
def test_pasted_pairs_are_scored_and_downloaded(page, metric):
    pairs = [
        ("adds two lists", "combines 2 arrays"),
        (HOSTILE[0], HOSTILE[1]),
        ("", "a"),
        ("", ""),
        ("=1+1", "\u00e9"),
    ]
    pasted = "candidate\treference\r\n" + "\r\n".join("\t".join(pair) for pair in pairs)
    page.fill("#pairs", pasted)
    page.check("#header")
    page.click("#run")
    page.wait_for_selector("#download:enabled")
    assert page.inner_text("#batch").startswith("5 pairs. Mean score ")
    with page.expect_download() as download:
        page.click("#download")
    head, *rows = download.value.path().read_text(encoding="utf-8").splitlines()
    assert download.value.suggested_filename == "scores.tsv"
    assert head == "score\tpercentile\tsame\tcandidate\treference"
    scores = metric.score(*zip(*pairs, strict=True))
    for row, pair, score, same in zip(rows, pairs, scores.values, scores.same, strict=True):
        numbers, shown = row.split("\t")[:3], row.split("\t")[3:]
        assert shown == list(pair)
        assert [float(numbers[0]), float(numbers[2])] == pytest.approx([score, same], abs=1e-3)
    page.fill("#pairs", "a\tb")
    page.uncheck("#header")
    page.click("#run")
    page.wait_for_function("document.getElementById('batch').textContent.startsWith('1 pair. Mean score ')")
    page.fill("#pairs", "a\tb\nonly one column")
    page.uncheck("#header")
    page.click("#run")
    assert page.inner_text("#batch") == "Line 2: expected two columns with a tab between them, found 1."


@needs_browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 1100), ("light", 390)])
def test_the_page_has_no_serious_fault_of_accessibility(shown, scheme, width):
    page = shown.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.fill("#candidate", "opens the log file")
    page.fill("#reference", "closes the log file")
    page.wait_for_selector(".changing")
    page.locator("details").evaluate("details => { details.open = true; }")
    assert shown.faults() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_print_is_dark_on_white_with_coloured_words(page, scheme):
    page.fill("#candidate", "opens the log file")
    page.fill("#reference", "closes the log file")
    page.wait_for_selector(".changing")
    page.emulate_media(media="print", color_scheme=scheme)
    body, word = (
        page.evaluate("one => ({ ...getComputedStyle(document.querySelector(one)) })", one)
        for one in ("body", ".words span")
    )
    assert (body["color"], body["backgroundColor"]) == ("rgb(31, 35, 40)", "rgb(255, 255, 255)")
    assert word["printColorAdjust"] == "exact"
    page.emulate_media(media="screen", color_scheme="light")


@needs_browser
def test_nothing_leaves_the_browser(shown, address):
    assert all(url.startswith((address, "data:")) for url in shown.requests)
    send = "fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.message)"
    assert shown.page.evaluate(send) == "Failed to fetch"
    refused = shown.page.evaluate(
        """new Promise((done) => {
            addEventListener("securitypolicyviolation", (event) => done(event.blockedURI));
            new Image().src = "http://127.0.0.1:9/x";
        })"""
    )
    assert refused == "http://127.0.0.1:9/x"


@needs_browser
def test_a_missing_model_is_told(page, address):
    other = page.context.new_page()
    other.route("**/encoder.onnx", lambda route: route.fulfill(status=404))
    other.goto(address)
    other.wait_for_selector(".error")
    assert other.inner_text("#status").startswith("The model cannot be loaded. model/encoder.onnx: 404")
    other.close()
