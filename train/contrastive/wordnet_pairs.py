"""Pairs that mean the same from WordNet: what a word means, and what can be said for it.

    python -m train.contrastive.wordnet_pairs /usr/share/wordnet runs/mini/corpus/train.txt runs/wordnet.jsonl

Reads the database files of WordNet 3.0 (the package wordnet-base on Debian and Ubuntu) and
writes JSON lines about the words of a corpus: `a` and `b` mean the same, `c`, where it is
given, the opposite.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.evaluation import contrast
from simllm.io import files
from simllm.perturb.summaries.held_out_words import HeldOut
from simllm.perturb.summaries.lexicon import irregular_forms
from train.runtime.command_line import add_overwrite, check_output, exit_status

# Lexicographer files of nouns that summaries of code do not speak of: animals, plants, food, …
_LEFT_OUT = {"05", "08", "13", "15", "17", "18", "19", "20", "27"}
_OFTEN = 10
_PARTS = ("verb", "noun", "adj", "adv")


@dataclass(frozen=True)
class Synset:
    """Words of one meaning, its definition and its examples."""

    words: list[str]
    definition: str
    examples: list[str]
    antonyms: dict[int, tuple[str, int]]  # number of a word -> synset and number of its opposite


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.contrastive.wordnet_pairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wordnet", type=Path, help="folder with data.verb, data.noun, …")
    parser.add_argument("corpus", type=Path, help="cleaned texts, one a line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    parser.add_argument(
        "--hold-out-contrast", action="store_true", help="nothing about the words of the contrast set"
    )
    add_overwrite(parser)
    options = parser.parse_args()
    return exit_status(lambda: _write(options))


def _write(options: argparse.Namespace) -> None:
    data = [_data(options.wordnet, part) for part in _PARTS]
    check_output(options.out, options.overwrite, [options.corpus, *data])
    held = HeldOut(contrast.held_out() if options.hold_out_contrast else (), irregular_forms())
    rows = list(pairs(read(options.wordnet), frequent(options.corpus), held))
    files.write(options.out, "".join(json.dumps(row) + "\n" for row in rows))
    opposites = sum("c" in row for row in rows)
    print(f"{len(rows):,} pairs, {opposites:,} with an opposite, in {options.out}", file=sys.stderr)


def read(folder: Path) -> dict[str, Synset]:
    """All synsets, by part of speech and offset."""
    found: dict[str, Synset] = {}
    for part in _PARTS:
        file = _data(folder, part)
        for number, line in files.lines(file):
            if line.startswith("  "):  # the licence
                continue
            try:
                found |= _synset(line)
            except (ValueError, IndexError):
                raise InputError(f"{file}, line {number}: not a line of WordNet 3") from None
    return found


def _data(folder: Path, part: str) -> Path:
    return folder / f"data.{part}"


def frequent(corpus: Path) -> set[str]:
    """The words that stand in a corpus ten times or more."""
    counts = Counter(word for _, line in files.lines(corpus) for word in line.split())
    return {word for word, count in counts.items() if count >= _OFTEN}


def _synset(line: str) -> dict[str, Synset]:
    data, _, gloss = line.partition("|")
    offset, category, part, count, *rest = data.split()
    if part == "n" and category in _LEFT_OUT:
        return {}
    size = int(count, 16)
    words = [re.sub(r"\(.*\)", "", word).replace("_", " ").lower() for word in rest[: 2 * size : 2]]
    pointers = rest[2 * size + 1 :]
    antonyms = {}
    for at in range(0, 4 * int(rest[2 * size]), 4):
        symbol, target, target_part, ends = pointers[at : at + 4]
        if symbol == "!" and ends != "0000":
            antonyms[int(ends[:2], 16) - 1] = (f"{target_part}{target}", int(ends[2:], 16) - 1)
    definition = re.sub(r";?\s*\"[^\"]*\"?", "", gloss).strip(" ;")
    synset = Synset(words, definition, re.findall(r'"([^"]+)"', gloss), antonyms)
    return {("a" if part == "s" else part) + offset: synset}


def pairs(synsets: dict[str, Synset], known: set[str], held: HeldOut) -> Iterator[dict[str, str]]:
    """A known word and its definition; an example and the same with a synonym (or opposite) in it.

    Nothing that is held out is among them, in any form: neither its pairs of words as synonyms,
    nor any of its words as an opposite.
    """
    for name, synset in synsets.items():
        opposites = {
            number: synsets[other].words[place]
            for number, (other, place) in synset.antonyms.items()
            if other in synsets and place < len(synsets[other].words)
        }
        words = [(number, word) for number, word in enumerate(synset.words) if known.issuperset(word.split())]
        told: list[str] = []  # of two words that are a held-out pair the definition is given to one
        for number, word in words:
            if not any(held.between(word, other) for other in (synset.definition, *told)):
                told.append(word)
                row = {"a": word, "b": synset.definition, "group": name}
                yield row | _opposite(word, opposites.get(number), word, held)
            for example in synset.examples:
                if not re.search(rf"\b{re.escape(word)}\b", example):
                    continue
                for _, other in words:
                    if other != word and not held.between(word, other):
                        same = re.sub(rf"\b{re.escape(word)}\b", other, example)
                        row = {"a": example, "b": same, "group": f"{name} {example}"}
                        yield row | _opposite(word, opposites.get(number), example, held)


def _opposite(word: str, opposite: str | None, text: str, held: HeldOut) -> dict[str, str]:
    if opposite is None or held.words.intersection(f"{word} {opposite}".split()):
        return {}
    return {"c": re.sub(rf"\b{re.escape(word)}\b", opposite, text)}


if __name__ == "__main__":
    sys.exit(main())
