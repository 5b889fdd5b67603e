"""Write the definitions and examples of WordNet as plain lines, to use as texts for distillation.

python -m train.distill.wordnet_glosses /usr/share/wordnet runs/glosses.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io import output_file
from train.data.wordnet import data_file, read_synsets
from train.runtime.command import make_parser, run_command

_PARTS = ("noun", "verb", "adj", "adv")


def read_glosses(wordnet: Path) -> Iterator[str]:
    """Yield the definition, "WORD : DEFINITION" of the first synonym, and the examples of each synset."""
    for part in _PARTS:
        for synset in read_synsets(wordnet, part):
            if synset.definition:
                yield synset.definition
                yield f"{synset.words[0]} : {synset.definition}"
            yield from synset.examples


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.distill.wordnet_glosses", __doc__)
    parser.add_argument("wordnet", type=Path, help="folder with data.noun and the others")
    parser.add_argument("output", type=Path, help="file to write, one text per line")
    return run_command(parser, _write, overwrite=True)


def _write(wordnet: Path, output: Path, overwrite: bool) -> None:
    if not wordnet.is_dir():
        raise InputError(f"{wordnet}: no such folder")
    output_file.check_output(output, overwrite, (data_file(wordnet, part) for part in _PARTS))
    output_file.write(output, "".join(f"{text}\n" for text in dict.fromkeys(read_glosses(wordnet))))


if __name__ == "__main__":
    raise SystemExit(main())
