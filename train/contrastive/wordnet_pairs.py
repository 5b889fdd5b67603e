"""Make text pairs with the same meaning from the dictionary WordNet.

    python -m train.contrastive.wordnet_pairs /usr/share/wordnet runs/mini/corpus/train.txt runs/wordnet.jsonl

The command reads the database files of WordNet 3.0 (the package wordnet-base on Debian and Ubuntu).
It writes JSON lines for the frequent words of a corpus. The texts `a` and `b` of a line have the same
meaning: a word and its definition, or an example sentence and the same sentence with a synonym. If the word
has an antonym, the line also has a text `c` with another meaning: `a` with the antonym instead of the word.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from simllm.evaluation.contrast import deciding_word_pairs
from simllm.io import output_file, reading
from simllm.perturb.summaries.lexicon import HeldOutWords, load_irregular_forms
from train.data.wordnet import Synset, data_file, read_synsets
from train.runtime.command import make_parser, run_command

# WordNet's numbers for categories of nouns that are rare in code summaries: animals, plants, food, persons, …
_SKIPPED_CATEGORIES = {"05", "08", "13", "15", "17", "18", "19", "20", "27"}
_FREQUENT = 10  # occurrences in the corpus
_PARTS_OF_SPEECH = ("verb", "noun", "adj", "adv")


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.contrastive.wordnet_pairs", __doc__)
    parser.add_argument("wordnet", type=Path, help="folder with data.verb, data.noun, …")
    parser.add_argument("corpus", type=Path, help="cleaned texts, one per line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    parser.add_argument(
        "--hold-out-contrast", action="store_true", help="nothing about the words of the contrast set"
    )
    return run_command(parser, _write, overwrite=True)


def _write(wordnet: Path, corpus: Path, out: Path, hold_out_contrast: bool, overwrite: bool) -> None:
    data = [data_file(wordnet, part) for part in _PARTS_OF_SPEECH]
    output_file.check_output(out, overwrite, [corpus, *data])
    held_out = HeldOutWords(deciding_word_pairs() if hold_out_contrast else (), load_irregular_forms())
    rows = list(make_pairs(read_useful_synsets(wordnet), find_frequent_words(corpus), held_out))
    output_file.write(out, "".join(json.dumps(row) + "\n" for row in rows))
    opposites = sum("c" in row for row in rows)
    print(f"{len(rows):,} pairs, {opposites:,} with an opposite, in {out}", file=sys.stderr)


def read_useful_synsets(wordnet: Path) -> dict[str, Synset]:
    """Read the synsets by key, in small letters, without the nouns of skipped categories."""
    synsets = (synset for part in _PARTS_OF_SPEECH for synset in read_synsets(wordnet, part))
    return {
        synset.key: replace(synset, words=[word.lower() for word in synset.words])
        for synset in synsets
        if not (synset.key.startswith("n") and synset.category in _SKIPPED_CATEGORIES)
    }


def find_frequent_words(corpus: Path) -> set[str]:
    """Find the words that occur at least ten times in a file of texts, one per line."""
    counts = Counter(word for _, line in reading.read_lines(corpus) for word in line.split())
    return {word for word, count in counts.items() if count >= _FREQUENT}


def _definition(synset: Synset) -> str:
    """Return the gloss without examples.

    The author of a quotation follows directly, unlike in `Synset.definition`, so that the pairs stay those
    that the released model was trained on.
    """
    return re.sub(r";?\s*\"[^\"]*\"?", "", synset.gloss).strip(" ;")


def make_pairs(
    synsets: dict[str, Synset], corpus_words: set[str], held_out: HeldOutWords
) -> Iterator[dict[str, str]]:
    """Yield texts `a` and `b` with the same meaning, and perhaps `c`, `a` with the antonym of the word.

    Pairs are made only for words of the corpus. All texts `a` and `b` of one `group` have the same meaning.
    The two words of a held-out pair are used neither as synonyms nor as antonyms.
    """
    for name, synset in synsets.items():
        definition = _definition(synset)
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
        # Only one word of a held-out pair is paired with the definition.
        defined: list[str] = []
        for number, word in words:
            if not any(held_out.holds_out(word, other) for other in (definition, *defined)):
                defined.append(word)
                row = {"a": word, "b": definition, "group": name}
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
    """Make the text `c`; nothing if the word has no antonym, or if either word is in a held-out pair."""
    if opposite is None or held_out.words.intersection(f"{word} {opposite}".split()):
        return {}
    return {"c": re.sub(rf"\b{re.escape(word)}\b", opposite, text)}


if __name__ == "__main__":
    sys.exit(main())
