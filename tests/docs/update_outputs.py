"""Update the documentation: figures and tables, `text` blocks with the output of their code blocks, drawings.

    python -m tests.docs.update_outputs                    # all pages
    python -m tests.docs.update_outputs docs/scoring.md

Outputs with a line `…` are not changed; they are listed if they no longer match, and so are checks that fail.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.docs.figures import failed_checks, refreshed
from tests.docs.markdown_blocks import PAGES, Session, blocks, same


def update_figures(page):
    """Write the figures and tables of a page as they were measured, and list the checks that fail."""
    text = refreshed(page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    for check in failed_checks(text):
        print(f"{page}: does not hold: {check}")


def update(page):
    """Run a page's blocks and write their outputs."""
    lines, found = page.read_text(encoding="utf-8").splitlines(), []
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for block in blocks(page):
            if block.run and not block.missing:
                printed = session.run(block)
                if block.expected is not None and not same(block.expected, printed):
                    found.append((block, printed))
    for block, printed in reversed(found):
        if "…" in block.expected.splitlines():
            print(f"{block} prints something else:\n{printed}")
        else:
            lines[block.expected_lines] = [line.rstrip() for line in printed.strip("\n").splitlines()]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path, help="Markdown files; default: all, and the drawings")
    parser.add_argument("--figures-only", action="store_true", help="run no code block")
    options = parser.parse_args()
    if not options.pages:
        subprocess.run([sys.executable, "docs/images/draw.py"], cwd=ROOT, check=True)
    for page in options.pages or PAGES:
        update_figures(page.resolve())
        if not options.figures_only:
            update(page.resolve())
