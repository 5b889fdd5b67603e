"""The real path of a file: its absolute path after following all symbolic links."""

from __future__ import annotations

import os
from pathlib import Path


def real(path: Path) -> Path:
    """Return the real path of a file; links that form a loop stay in the path, and no error is raised."""
    return Path(os.path.realpath(path))
