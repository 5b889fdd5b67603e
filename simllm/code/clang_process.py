"""A process of its own that parses C++ with libclang into the trees of CREF's published code.

libclang reads whatever the code includes, and hostile code can crash it or keep it busy. Then this process
alone ends. It reads a JSON object (`code`, `file` and `options` of the compiler) from the standard input, and
writes a tree as `OrderedTree` has it: labels and sizes.

The file is run by its path, with no other module of simllm, so that it starts fast.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MOST_SECONDS = 30  # of processor time
_MOST_MEMORY = 2 << 30  # bytes of address space


def tree(code: str, file: str, options: list[str]) -> dict[str, list[Any]]:
    """Parse C++ code into labels and sizes in postorder.

    As published: a node with a single child is replaced by this child, nodes from other files are left out,
    and the label of a node is its kind and name. So operators and literals have no text, and the root is
    named after the file.
    """
    from clang.cindex import Cursor, Index

    unit = Index.create().parse(file, args=options, unsaved_files=[(file, code)])
    labels: list[str] = []
    sizes: list[int] = []

    def add(cursor: Cursor) -> None:
        while True:
            place = cursor.location.file
            if place is not None and place.name != file:
                return
            children = list(cursor.get_children())
            if len(children) != 1:
                break
            cursor = children[0]
        before = len(labels)
        for child in children:
            add(child)
        labels.append(f"{cursor.kind.name} {cursor.spelling}")
        sizes.append(len(labels) - before)

    # Recursion, because libclang itself is recursive, and ends earlier.
    sys.setrecursionlimit(100_000)
    add(unit.cursor)
    if not labels:  # the only declaration is in an included file
        labels, sizes = [f"{unit.cursor.kind.name} {unit.cursor.spelling}"], [1]
    return {"labels": labels, "sizes": sizes}


def main() -> None:
    """Answer one request."""
    import resource  # late, because Windows lacks it, where the other process imports this module

    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = json.load(sys.stdin)
    json.dump(tree(request["code"], request["file"], request["options"]), sys.stdout)


if __name__ == "__main__":
    main()
