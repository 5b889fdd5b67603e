"""Helpers that search for processes of this machine, and wait until they have ended."""

import os
import time
from pathlib import Path


def with_word(word):
    """Return the processes whose command line contains a word; zombies have no command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def wait_until(condition, seconds=20):
    """Wait until a condition holds; return whether it does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
