"""The glosses and examples of WordNet, as plain lines: what words mean, in whole phrases.

python -m train.distill.glosses /usr/share/wordnet runs/glosses.txt
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files
from train.runtime.tool_command import run_tool

_PARTS = ("noun", "verb", "adj", "adv")
_EXAMPLE = re.compile(r'"([^"]+)"')


def read(wordnet: Path) -> Iterator[str]:
    """Yield "word : gloss" for each word with a meaning, and each example.

    Args:
        wordnet: The folder of WordNet's database files (see wndb(5WN)).

    Raises:
        InputError: A database file is missing.
    """
    for part in _PARTS:
        for _, line in files.lines(wordnet / f"data.{part}"):
            if line.startswith("  "):  # the licence
                continue
            synset, _, gloss = line.partition(" | ")
            fields = synset.split(" ")
            count = int(fields[3], 16)
            word = re.sub(r"\(\w+\)$", "", fields[4]).replace("_", " ")
            definition = _EXAMPLE.sub("", gloss).strip(" ;")
            if definition:
                yield definition
                yield f"{word} : {definition}" if count else definition
            yield from _EXAMPLE.findall(gloss)


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.distill.glosses",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wordnet", type=Path, help="folder with data.noun and the others")
    parser.add_argument("output", type=Path, help="file to write, one text a line")
    options = parser.parse_args()

    def run() -> None:
        if not options.wordnet.is_dir():
            raise InputError(f"{options.wordnet}: no such folder")
        files.write(options.output, "".join(f"{text}\n" for text in dict.fromkeys(read(options.wordnet))))

    return run_tool(run)


if __name__ == "__main__":
    raise SystemExit(main())
