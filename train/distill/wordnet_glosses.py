"""Write the definitions and examples of WordNet as plain lines, to use as texts for distillation.

python -m train.distill.wordnet_glosses /usr/share/wordnet runs/glosses.txt
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io import output_file, reading
from train.runtime.command import check_output, make_parser, run_command

_PARTS = ("noun", "verb", "adj", "adv")
_EXAMPLE = re.compile(r'"([^"]+)"')


def read_glosses(wordnet: Path) -> Iterator[str]:
    """Yield the texts of each synset: the definition, "WORD : DEFINITION" of the first synonym, the examples.

    The folder has WordNet's database files (see wndb(5WN)).
    """
    for part in _PARTS:
        file = wordnet / f"data.{part}"
        for number, line in reading.read_lines(file):
            # The licence stands above the data.
            if line.startswith("  "):
                continue
            synset, _, gloss = line.partition(" | ")
            fields = synset.split(" ")
            if len(fields) < 5:
                raise InputError(f"{file}, line {number}: expected a synset of WordNet")
            # Adjectives may end in a marker of their position, such as "(p)".
            word = re.sub(r"\(\w+\)$", "", fields[4]).replace("_", " ")
            parts = (part.strip() for part in _EXAMPLE.sub("", gloss).split(";"))
            definition = "; ".join(part for part in parts if part)
            if definition:
                yield definition
                yield f"{word} : {definition}"
            yield from _EXAMPLE.findall(gloss)


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.distill.wordnet_glosses", __doc__)
    parser.add_argument("wordnet", type=Path, help="folder with data.noun and the others")
    parser.add_argument("output", type=Path, help="file to write, one text per line")
    return run_command(parser, _write, overwrite=True)


def _write(wordnet: Path, output: Path, overwrite: bool) -> None:
    if not wordnet.is_dir():
        raise InputError(f"{wordnet}: no such folder")
    check_output(output, overwrite, (wordnet / f"data.{part}" for part in _PARTS))
    output_file.write(output, "".join(f"{text}\n" for text in dict.fromkeys(read_glosses(wordnet))))


if __name__ == "__main__":
    raise SystemExit(main())
