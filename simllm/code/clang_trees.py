"""The trees of C++ code as CREF's published code has them, from libclang instead of tree-sitter."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from simllm.code import clang_process
from simllm.code.tree_distance import OrderedTree
from simllm.errors import InputError
from simllm.io.packages import missing_package, require_linux


def check_clang() -> None:
    """Check that libclang and the headers of a compiler are installed."""
    require_linux("libclang")
    if find_spec("clang") is None:
        raise InputError(missing_package("libclang", "clang"))
    _headers()


@cache
def _headers() -> str:
    """Return the folder with the compiler's own headers, such as stddef.h.

    The package libclang has none. Without them, names such as `size_t` are unknown, and trees lose nodes.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise InputError("the trees of libclang need the headers of g++, which is not installed")
    done = subprocess.run([compiler, "-print-file-name=include"], capture_output=True, text=True, check=False)
    folder = done.stdout.strip()
    if not Path(folder).is_dir():
        raise InputError(f"g++ names no folder of its headers: {folder[:200]!r}")
    return folder


@lru_cache(64)  # the patches of an item share its tree
def clang_tree(code: str, file: str) -> OrderedTree | None:
    """Parse C++ code into its tree; None if libclang fails, or takes too much time or memory.

    `file` is the name of the tree's root. The published code names it after a random file, so that the roots
    of two trees always differ.
    """
    request = {"code": code, "file": file, "options": ["-isystem", _headers()]}
    try:
        done = subprocess.run(
            [sys.executable, "-P", clang_process.__file__],
            input=json.dumps(request).encode(), capture_output=True, check=False,
            timeout=2 * clang_process.MOST_SECONDS,
            cwd="/",  # an include must not find a file of the user by chance
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    found = json.loads(done.stdout)
    return OrderedTree(found["labels"], found["sizes"])
