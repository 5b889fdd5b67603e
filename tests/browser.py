"""HTML pages in a real browser: Chromium, driven by Playwright."""

import contextlib
import os
import shutil
from collections.abc import Iterator

import matplotlib.image
import pytest

_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def needs_browser(test):
    """Mark a test as slow; skip it if Chromium is not installed, unless REQUIRE_BROWSER=1 is set."""
    is_missing = _CHROMIUM is None and os.environ.get("REQUIRE_BROWSER") != "1"
    return pytest.mark.slow(pytest.mark.skipif(is_missing, reason="no Chromium to show the page")(test))


class Visit:
    """A page in the browser, with the requests and errors that it caused.

    Attributes:
        page: The page of Playwright.
        requests: The addresses that were requested, that of the page included.
        errors: The uncaught errors of the page's scripts.
        alerts: The texts of the dialogs that scripts opened.
    """

    def __init__(self, page):
        self.page, self.requests, self.errors, self.alerts = page, [], [], []
        page.on("dialog", self._close)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _close(self, dialog):
        self.alerts.append(dialog.message)
        dialog.dismiss()

    def faults(self):
        """Return the serious accessibility faults that axe finds: for each, the rule and the elements."""
        from axe_playwright_python.sync_playwright import Axe

        violations = Axe().run(self.page).response["violations"]
        return [
            (found["id"], [node["html"] for node in found["nodes"]])
            for found in violations
            if found["impact"] in ("serious", "critical")
        ]


@contextlib.contextmanager
def visit(address: str, **options) -> Iterator[Visit]:
    """Open a page; `options` are those of Playwright's `new_context`, such as `color_scheme`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=arguments)
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}} | options)
        shown = Visit(context.new_page())
        shown.page.goto(address)
        yield shown
        browser.close()


def check_page(page, folder, height):
    """Check that most pixel rows show something, and that the margins are empty."""
    shot = folder / "page.png"
    with visit(page.as_uri(), viewport={"width": 1100, "height": height}) as shown:
        shown.page.screenshot(path=shot)
        assert not shown.errors
    grey = matplotlib.image.imread(shot)[:, :, :3].mean(axis=2)
    assert grey.shape[1] == 1100
    printed = (grey < 0.9).any(axis=1)
    assert printed.mean() > 0.3
    assert (grey[:, :15] > 0.99).all()
    assert (grey[:, -15:] > 0.99).all()
