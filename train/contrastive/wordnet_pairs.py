"""Make text pairs with the same meaning from the dictionary WordNet.

    python -m train.contrastive.wordnet_pairs /usr/share/wordnet runs/mini/corpus/train.txt runs/wordnet.jsonl

The command reads the database files of WordNet 3.0 (the package wordnet-base on Debian and Ubuntu).
It writes JSON lines for the frequent words of a corpus. The texts `a` and `b` of a line have the same
meaning: a word and its definition, or an example sentence and the same sentence with a synonym. If the word
has an antonym, the line also has a text `c` with another meaning: `a` with the antonym instead of the word.
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
from simllm.evaluation.contrast_word_pairs import deciding_word_pairs
from simllm.io import output_file, read_lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.perturb.summaries.lexicon import load_irregular_forms
from train.runtime.overwrite_option import add_overwrite_option, check_output
from train.runtime.tool_exit_status import run_tool

# WordNet's numbers for categories of nouns that do not occur in code summaries: animals, plants, food, …
_SKIPPED_CATEGORIES = {"05", "08", "13", "15", "17", "18", "19", "20", "27"}
_FREQUENT = 10  # occurrences in the corpus
_PARTS_OF_SPEECH = ("verb", "noun", "adj", "adv")


@dataclass(frozen=True)
class Synset:
    """A set of synonyms with their definition and examples.

    Attributes:
        words: The synonyms.
        definition: The definition that the synonyms share.
        examples: Sentences that use a synonym.
        antonyms: A dict from the index of a synonym in `words` to its antonym. For example,
            `{0: ("v00001740", 2)}` means: the antonym of `words[0]` is `words[2]` of another synset, which
            has the key "v00001740". Synonyms without antonym are missing.
    """

    words: list[str]
    definition: str
    examples: list[str]
    antonyms: dict[int, tuple[str, int]]


def main() -> int:
    """Run the command line: make text pairs with the same meaning from WordNet, and write them to a file.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m train.contrastive.wordnet_pairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wordnet", type=Path, help="folder with data.verb, data.noun, …")
    parser.add_argument("corpus", type=Path, help="cleaned texts, one per line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    parser.add_argument(
        "--hold-out-contrast", action="store_true", help="nothing about the words of the contrast set"
    )
    add_overwrite_option(parser)
    options = parser.parse_args()
    return run_tool(lambda: _write(**vars(options)))


def _write(wordnet: Path, corpus: Path, out: Path, hold_out_contrast: bool, overwrite: bool) -> None:
    """Make text pairs with the same meaning from WordNet, and write them as JSON lines.

    Args:
        wordnet: The folder with WordNet's database files.
        corpus: A file of cleaned texts, one per line. Pairs are made only for frequent words of the corpus.
        out: The file to write.
        hold_out_contrast: Whether to leave out the word pairs that the contrast set (a test set for metrics)
            tests, such as "minimum" and "maximum". Then the contrast set is a fair test of models that are
            trained on the written text pairs.
        overwrite: Whether `out` may be replaced.
    """
    data = [_data(wordnet, part) for part in _PARTS_OF_SPEECH]
    check_output(out, overwrite, [corpus, *data])
    held_out = HeldOutWords(deciding_word_pairs() if hold_out_contrast else (), load_irregular_forms())
    rows = list(make_pairs(read_synsets(wordnet), find_frequent_words(corpus), held_out))
    output_file.write(out, "".join(json.dumps(row) + "\n" for row in rows))
    opposites = sum("c" in row for row in rows)
    print(f"{len(rows):,} pairs, {opposites:,} with an opposite, in {out}", file=sys.stderr)


def read_synsets(folder: Path) -> dict[str, Synset]:
    """Read all synsets (sets of synonyms) from WordNet's database files.

    Args:
        folder: The folder of the files `data.verb`, `data.noun`, `data.adj` and `data.adv`.

    Returns:
        The synsets by key. A key is the part of speech and the offset in the file, such as "v00001740".

    Raises:
        InputError: A file cannot be read, or a line is not in the format of WordNet 3.
    """
    synsets: dict[str, Synset] = {}
    for part in _PARTS_OF_SPEECH:
        file = _data(folder, part)
        for number, line in read_lines.lines(file):
            if line.startswith("  "):  # the licence
                continue
            try:
                synsets |= _parse_synset(line)
            except (ValueError, IndexError):
                raise InputError(f"{file}, line {number}: not a line of WordNet 3") from None
    return synsets


def _data(folder: Path, part: str) -> Path:
    return folder / f"data.{part}"


def find_frequent_words(corpus: Path) -> set[str]:
    """Find the words that occur at least ten times in a corpus, a file with one text per line."""
    counts = Counter(word for _, line in read_lines.lines(corpus) for word in line.split())
    return {word for word, count in counts.items() if count >= _FREQUENT}


def _parse_synset(line: str) -> dict[str, Synset]:
    """Parse one line of a WordNet data file, which describes one synset (set of synonyms).

    Returns:
        A dictionary with one item, from the synset's key to the synset. The key is the part of speech and the
        offset in the file, such as "v00001740". The dictionary is empty if the synset is about animals, food
        or another topic that does not occur in code summaries.
    """
    data, _, gloss = line.partition("|")
    offset, category, part, count, *rest = data.split()
    if part == "n" and category in _SKIPPED_CATEGORIES:
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


def make_pairs(
    synsets: dict[str, Synset], corpus_words: set[str], held_out: HeldOutWords
) -> Iterator[dict[str, str]]:
    """Make text pairs with the same meaning from WordNet.

    A word is paired with its definition. An example sentence is paired with a variant in which a synonym
    replaces a word.

    Args:
        synsets: The synsets (sets of synonyms) by key, from `read_synsets`.
        corpus_words: Frequent words of the corpus. Pairs are made only for these words.
        held_out: Word pairs that must not be trained on, such as ("open", "close"). The two words of such a
            pair are used neither as synonyms nor as antonyms.

    Yields:
        Dictionaries with these keys:

        - "a": a word, or an example sentence that contains the word;
        - "b": a text with the same meaning as "a": the definition, or the sentence with a synonym;
        - "c": a text with another meaning: "a" with the antonym instead of the word. If "a" is only the
          word, "c" is only the antonym. The key is missing if the word has no antonym in `synsets`, or if the
          word or the antonym occurs in any pair of `held_out`;
        - "group": a name for the meaning. All texts "a" and "b" of one group have the same meaning.
    """
    for name, synset in synsets.items():
        opposites = {
            number: synsets[other].words[place]
            for number, (other, place) in synset.antonyms.items()
            if other in synsets and place < len(synsets[other].words)
        }
        words = [
            (number, word)
            for number, word in enumerate(synset.words)
            if corpus_words.issuperset(word.split())
        ]
        defined: list[str] = []  # only one word of a held-out pair is paired with the definition
        for number, word in words:
            if not any(held_out.holds_out(word, other) for other in (synset.definition, *defined)):
                defined.append(word)
                row = {"a": word, "b": synset.definition, "group": name}
                yield row | _opposite(word, opposites.get(number), word, held_out)
            for example in synset.examples:
                if not re.search(rf"\b{re.escape(word)}\b", example):
                    continue
                for _, other in words:
                    if other != word and not held_out.holds_out(word, other):
                        variant = re.sub(rf"\b{re.escape(word)}\b", other, example)
                        row = {"a": example, "b": variant, "group": f"{name} {example}"}
                        yield row | _opposite(word, opposites.get(number), example, held_out)


def _opposite(word: str, opposite: str | None, text: str, held_out: HeldOutWords) -> dict[str, str]:
    """Make a text with the opposite meaning, by replacing a word in a text by its antonym.

    Args:
        word: The word to replace.
        opposite: The antonym of the word; None if the word has no antonym.
        text: A text that contains the word.
        held_out: Word pairs that must not be trained on.

    Returns:
        A dictionary with the changed text under the key "c". It is empty if the word has no antonym, or if
        the word or its antonym occurs in a held-out pair.
    """
    if opposite is None or held_out.words.intersection(f"{word} {opposite}".split()):
        return {}
    return {"c": re.sub(rf"\b{re.escape(word)}\b", opposite, text)}


if __name__ == "__main__":
    sys.exit(main())
