"""Pages of HTML as a browser shows them."""

import shutil
import subprocess

import matplotlib.image
import pytest

_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(_CHROMIUM is None, reason="no chromium to render the page")


def check_page(page, folder, height):
    """Check that most lines of pixels have something on them, and that nothing runs into the margins."""
    shot = folder / "page.png"
    command = [_CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder}/profile", f"--window-size=1100,{height}", f"--screenshot={shot}"]
    subprocess.run([*command, page.as_uri()], capture_output=True, timeout=300, check=True)
    grey = matplotlib.image.imread(shot)[:, :, :3].mean(axis=2)
    assert grey.shape[1] == 1100
    printed = (grey < 0.9).any(axis=1)
    assert printed.mean() > 0.3
    assert (grey[:, :15] > 0.99).all()
    assert (grey[:, -15:] > 0.99).all()
