"""Reader of the dictionary WordNet 3 (on Debian and Ubuntu, the package wordnet-base); see wndb(5WN)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io import reading

_EXAMPLE = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class Synset:
    """A set of synonyms with their definition and examples.

    Attributes:
        key: The part of speech and the offset in the file, such as "v00001740".
        category: WordNet's number of the subject, such as "05" for animals.
        gloss: The definition and the examples, which are quoted sentences that use a synonym.
        antonyms: From the index of a synonym in `words` to its antonym: `{0: ("v00001740", 2)}` says that the
            antonym of `words[0]` is `words[2]` of the synset with key "v00001740".
    """

    key: str
    category: str
    words: list[str]
    gloss: str
    antonyms: dict[int, tuple[str, int]]

    @property
    def examples(self) -> list[str]:
        """The examples in the gloss, without quotation marks."""
        return _EXAMPLE.findall(self.gloss)

    @property
    def definition(self) -> str:
        """The gloss without examples; it may end in the author of a quotation, as in "…; - Henry Miller"."""
        parts = (part.strip() for part in _EXAMPLE.sub("", self.gloss).split(";"))
        return "; ".join(part for part in parts if part)


def data_file(wordnet: Path, part: str) -> Path:
    """Return the file of a part of speech: noun, verb, adj or adv."""
    return wordnet / f"data.{part}"


def read_synsets(wordnet: Path, part: str) -> Iterator[Synset]:
    """Yield the synsets of a part of speech in the order of the file."""
    file = data_file(wordnet, part)
    for number, line in reading.read_lines(file):
        # The licence stands above the data.
        if line.startswith("  "):
            continue
        try:
            yield _parse(line)
        except (ValueError, IndexError):
            raise InputError(f"{file}, line {number}: expected a synset of WordNet 3") from None


def _parse(line: str) -> Synset:
    data, _, gloss = line.partition("|")
    offset, category, part, count, *rest = data.split()
    size = int(count, 16)
    # Adjectives may end in a marker of their position, such as "(p)".
    words = [re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in rest[: 2 * size : 2]]
    pointers = rest[2 * size + 1 :]
    antonyms = {}
    for at in range(0, 4 * int(rest[2 * size]), 4):
        symbol, target, target_part, ends = pointers[at : at + 4]
        # "!" is an antonym of two words, whose places are two hexadecimal numbers from 1; 0000 links synsets.
        if symbol == "!" and ends != "0000":
            antonyms[int(ends[:2], 16) - 1] = (f"{target_part}{target}", int(ends[2:], 16) - 1)
    # "s" is a satellite adjective; pointers call it "a".
    return Synset(("a" if part == "s" else part) + offset, category, words, gloss, antonyms)
