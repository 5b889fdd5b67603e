"""Update the documentation: figures and tables, `text` blocks with the output of their code blocks, drawings.

    python -m tests.docs.update_outputs                    # all pages
    python -m tests.docs.update_outputs docs/scoring.md

Outputs with a line `…` are not changed; they are listed if they no longer match, and so are checks that fail.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.docs.figures import failed_checks, refreshed
from tests.docs.markdown_blocks import PAGES, Session, blocks, same


def update(page):
    """Write a page's figures, run its blocks, and write their outputs."""
    text = refreshed(page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    for check in failed_checks(text):
        print(f"{page}: does not hold: {check}")
    lines, found = page.read_text(encoding="utf-8").splitlines(), []
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for block in blocks(page):
            if block.run:
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
    if not sys.argv[1:]:
        subprocess.run([sys.executable, "docs/images/draw.py"], cwd=ROOT, check=True)
    for name in sys.argv[1:] or PAGES:
        update(Path(name).resolve())
