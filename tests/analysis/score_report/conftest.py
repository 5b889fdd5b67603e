"""Fixtures that open reports in a browser.

All tests of a test file use the same report, which has many pairs. A test can open other reports, too.
"""

import pytest

from simllm.analysis.score_report import render_report
from simllm.metric import SimLLM
from tests.analysis.score_report.reports import scored_pairs
from tests.browser import Visit, visit


@pytest.fixture(scope="module")
def default_metric():
    return SimLLM()


@pytest.fixture(scope="module")
def run():
    return scored_pairs(400)


@pytest.fixture(scope="module")
def shown(run, tmp_path_factory):
    """Open the report of `run` in a browser; check at the end that it made no error and no web request."""
    file = tmp_path_factory.mktemp("report") / "page.html"
    file.write_text(render_report(run, "simllm score"), encoding="utf-8")
    with visit(file.as_uri(), permissions=["clipboard-read", "clipboard-write"]) as shown:
        yield shown
        assert shown.errors == []
        assert {*shown.requests} == {file.as_uri()}  # nothing else is loaded


@pytest.fixture
def page(shown):
    """Reload the report of `run`, in a window of 1100 x 900 pixels and in light colours."""
    shown.page.set_viewport_size({"width": 1100, "height": 900})
    shown.page.emulate_media(media="screen", color_scheme="light")
    shown.page.goto(shown.requests[0])
    return shown.page


@pytest.fixture
def open_report(shown, tmp_path):
    """Return a function that opens the report of another run in a new tab of the same browser."""
    opened = []

    def open_run(run, comparison=None):
        file = tmp_path / "page.html"
        file.write_text(render_report(run, "", comparison), encoding="utf-8")
        opened.append(Visit(shown.page.context.new_page()))
        opened[-1].page.goto(file.as_uri())
        return opened[-1]

    yield open_run
    for report in opened:
        report.page.close()
    assert [report.errors for report in opened] == [[]] * len(opened)
