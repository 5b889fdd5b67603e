"""The report of runs: its pages, hostile replies, and comparisons."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from simllm import repair
from simllm.errors import InputError
from simllm.repair import report
from simllm.repair.results import read_results
from simllm.repair.settings import read_run_items, read_settings
from tests.browser import check_page, needs_browser, visit
from tests.command import run
from tests.repair.programs import WRONG, by_content, fenced, items

HOSTILE = '</pre><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}\u202e'


@pytest.fixture(scope="module")
def runs(tmp_path_factory, sandbox):
    """Make two runs with hostile texts, such as HTML; in the second run, no reply is correct."""
    from tests.chat_server import chat_server

    folder = tmp_path_factory.mktemp("runs")
    rows = [
        row | {"group": f"{HOSTILE} {n % 2}", "description": f"{HOSTILE} {n}"}
        for n, row in enumerate(items(4))
    ]
    rows[0]["id"] = HOSTILE
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with chat_server() as server:
        server.whole = True
        options = {"base_url": f"{server.url}/v1", "attempts": 2}
        server.reply = lambda body: HOSTILE + by_content(body) if len(body["messages"]) > 1 else HOSTILE
        repair.run(folder / "items.jsonl", folder / "cref", model="M", **options)
        server.reply = lambda body: fenced(WRONG + f"print('''{HOSTILE}''')\n")
        repair.run(folder / "items.jsonl", folder / "single", model=HOSTILE, strategy="single", **options)
    return folder


def test_pages_escape_hostile_texts(runs, tmp_path):
    report.write([runs / "cref", runs / "single"], tmp_path / "report")
    pages = sorted((tmp_path / "report").rglob("*.html"))
    assert [page.name for page in pages] == [
        "0001.html",
        "0002.html",
        "0003.html",
        "0004.html",
        "report.html",
    ]
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<script|<img|</pre></pre>", text)
        assert "&lt;script&gt;" in text
        assert "{{ 7 * 7 }}" in text
        assert "default-src 'none'" in text
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert set(found["comparisons"]) == {"AVG", "TOP-2"}
    assert len(found["runs"]) == 2


@needs_browser
def test_pages_run_nothing_of_hostile_texts(runs, tmp_path):
    report.write([runs / "cref", runs / "single"], tmp_path / "report")
    for page in (tmp_path / "report").rglob("*.html"):
        with visit(page.as_uri()) as shown:
            assert (shown.alerts, shown.errors) == ([], [])


def test_pages_of_a_replay_are_equal(runs, tmp_path):
    repair.run(runs / "items.jsonl", tmp_path / "again", replay=runs / "cref", parallel=3)
    for name, folder in {"a": runs / "cref", "b": tmp_path / "again"}.items():
        report.write([folder], tmp_path / name)
    for page in (tmp_path / "a").rglob("*.html"):
        assert page.read_bytes() == (tmp_path / "b" / page.relative_to(tmp_path / "a")).read_bytes()


def test_definition_of_rpsr(runs, tmp_path):
    report.write([runs / "cref"], tmp_path / "report", rpsr="published")
    assert "RPSR published" in (tmp_path / "report" / "report.html").read_text()


def test_too_few_items_are_told(runs, tmp_path):
    done = run("repair", "report", runs / "cref", runs / "single", "-o", tmp_path / "report")
    few = [
        "4 items: no difference can be significant, since p is at least 0.125; no intervals are given",
        "M, cref: code length: 2 repaired and 2 other items: no difference can be significant",
        f"{HOSTILE[:-1]} , single: code length: no item is repaired: there is no test",
    ]
    assert (done.returncode, done.stderr) == (0, "".join(f"simllm: warning: {one}\n" for one in few))
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert found["warnings"][:2] == few[:2]
    lengths = found["analyses"]["M, cref"]["code length"]
    assert (lengths["repaired"], lengths["others"]) == (2, 2)
    assert f"<strong>{few[0]}.</strong>" in (tmp_path / "report" / "report.html").read_text()


def test_what_a_reader_must_know_is_said(runs, tmp_path, server):
    (tmp_path / "items.jsonl").write_text('{"id": "a", "code": "x = 1", "reference": "sets x"}\n')
    server.reply = lambda body: "sets x" if len(body["messages"]) > 1 else None
    options = {"model": "M", "base_url": f"{server.url}/v1", "judge": "jaccard", "bar": 0.9}
    repair.run(tmp_path / "items.jsonl", tmp_path / "run", **options, retries=0)
    report.write([tmp_path / "run"], tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "The judge knew the references" in page
    assert "is incomplete" in page
    assert "left out" not in page  # summaries have no fix


def test_wrong_runs(runs, tmp_path):
    with pytest.raises(InputError, match=r"has no settings\.json; expected the folder of a run"):
        report.write([tmp_path / "none"], tmp_path / "report")
    with pytest.raises(InputError, match="name another folder"):
        report.write([runs / "cref"], runs / "cref" / "report")
    again = runs / "single" / ".." / "cref"
    with pytest.raises(InputError, match=f"{re.escape(str(again))}: is named twice"):
        report.write([runs / "cref", runs / "single", again], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_items_that_differ_between_runs_are_refused(runs, tmp_path):
    rows = [json.loads(line) for line in (runs / "items.jsonl").read_text().splitlines()]
    rows[1]["tests"] = rows[1]["tests"][:1]
    shutil.copytree(runs / "single", tmp_path / "other")
    (tmp_path / "other" / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"^runs .* have different items under the id 'item 1'$"):
        report.write([runs / "cref", tmp_path / "other"], tmp_path / "report")


def test_a_damaged_summary_is_an_error(runs, tmp_path):
    shutil.copytree(runs / "cref", tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text('{"complete": true}')
    with pytest.raises(InputError, match=r"summary\.json: missing key judge$"):
        report.write([tmp_path / "run"], tmp_path / "report")


def test_every_top_of_any_run_is_shown(runs, tmp_path):
    repair.run(runs / "items.jsonl", tmp_path / "one", replay=runs / "cref", attempts=1)
    report.write([tmp_path / "one", runs / "cref"], tmp_path / "report")
    assert "<th>TOP-2</th>" in (tmp_path / "report" / "report.html").read_text()


def test_huge_replies_are_cut_on_the_page(runs):
    attempt, item = (
        read_results(runs / "single")[0],
        read_run_items(runs / "single", read_settings(runs / "single"))[0],
    )
    code = "x = 1\n" * 500_000
    huge = replace(attempt, rounds=(replace(attempt.rounds[0], reply=code, code=code),))
    page = report.item_page(item, {"M": [huge]})
    assert len(page) < 300_000
    assert "… (3,000,000 characters)" in page


@needs_browser
@pytest.mark.slow
def test_pages_in_a_browser(runs, tmp_path):
    report.write([runs / "cref", runs / "single"], tmp_path / "report")
    check_page(tmp_path / "report" / "report.html", tmp_path, 2000)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("summary.json", "{", "summary.json: not JSON"),
        ("summary.json", '{"complete": true}', "missing key judge"),
        ("summary.json", '{"complete": 1, "judge": [], "figures": {}, "groups": {}}', "a JSON object"),
        ("summary.json", '{"complete": 1, "judge": {}, "figures": {}, "groups": {}}', "do not fit together"),
        ("summary.json", '{"complete": 1, "judge": {}, "figures": {"TOP": 1}, "groups": {}}', "do not fit"),
        ("results.jsonl", '{"item": 1}\n', "item must be of type str"),
        ("results.jsonl", "[]\n", "results.jsonl, line 1: is a JSON array"),
        ("settings.json", '{"model": "M", "attempts": %s}' % ("9" * 400), "attempts must be a number"),
        ("settings.json", '{"model": "M", "price": {"input": %s, "output": 1}}' % ("9" * 400), "price.input"),
    ],
)  # fmt: skip
def test_damaged_runs_are_refused_in_one_line(runs, tmp_path, name, text, message):
    shutil.copytree(runs / "cref", tmp_path / "run")
    (tmp_path / "run" / name).write_text(text)
    with pytest.raises(InputError) as caught:
        report.write([tmp_path / "run"], tmp_path / "report")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "report").exists()


def test_the_legend_tells_runs_of_the_same_model_apart(runs):
    """Their names differ at the end, where a legend is cut."""
    found = report.read_runs([runs / "cref"])
    names = [f"{'M' * 50}, cref, prompts cref-paper ({folder})" for folder in ("warm", "cold")]
    drawn = report.draw_rounds([replace(found[0], name=name) for name in names])
    assert "prompts cref-paper (warm)" in drawn
    assert "prompts cref-paper (cold)" in drawn
