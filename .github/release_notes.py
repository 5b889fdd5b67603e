"""Print the changelog's section of a version; fail if anything in the repository has another version.

python .github/release_notes.py 0.2.0
"""

import re
import sys
from pathlib import Path

# Each file that names the version, and how.
NAMES = {
    "simllm/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "conda.recipe/recipe.yaml": r"^  version: (\d.*)$",
}


def main(version: str) -> int:
    """Print the section, or what is wrong; return the exit status."""
    for file, pattern in NAMES.items():
        found = re.search(pattern, Path(file).read_text(encoding="utf-8"), re.MULTILINE)
        if not found or found[1] != version:
            print(f"{file}: has version {found and found[1]}, not {version}", file=sys.stderr)
            return 2
    changelog = Path("CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\] - (\S+)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if not section or not re.fullmatch(r"\d{4}-\d\d-\d\d", section[1]):
        print(f"CHANGELOG.md: expected a section '## [{version}] - YYYY-MM-DD'", file=sys.stderr)
        return 2
    print(section[2].strip())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
