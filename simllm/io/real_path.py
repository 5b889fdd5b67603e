"""The real path of a file: its absolute path after following all symbolic links."""

from __future__ import annotations

import os
from pathlib import Path


def real(path: Path) -> Path:
    """Return the absolute path of a file, after following all symbolic links.

    Links that form a loop cannot be followed. They stay in the path, and no error is raised.
    """
    return Path(os.path.realpath(path))
