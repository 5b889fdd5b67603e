"""The documentation builds, its links are valid, and its figures are up to date."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from tests.conftest import ROOT
from tests.docs.markdown_blocks import PAGES
from tests.test_layout import PACKAGES

_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.*?)(?: \{#([\w-]+)\})?$", re.M)


def slugs(page):
    """Return the anchors of the headings of a page."""
    found = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {anchor or re.sub(r"[^\w]+", "-", title.lower()).strip("-") for title, anchor in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_point_to_existing_files_and_headings(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for link in (a or b for a, b in _LINK.findall(text)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {link}"
        if anchor and file.suffix == ".md":
            assert anchor in slugs(file), f"{page.name}: {link}"


def test_drawings_are_up_to_date():
    file = ROOT / "docs" / "images" / "draw.py"
    spec = spec_from_file_location("draw", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, content in module.drawings().items():
        assert (file.parent / name).read_text() == content, f"{name}: run python docs/images/draw.py"
    assert [name.removesuffix(".py") for name, _ in module.PACKAGES] == PACKAGES


@pytest.mark.slow
def test_site_builds_strictly(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "site" / "reference" / "metric" / "index.html").read_text()
    assert "simllm.metric.SimLLM.embed" in reference
