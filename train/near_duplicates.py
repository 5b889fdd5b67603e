"""Comments of a corpus that say the same in almost the same words.

    python -m train.near_duplicates runs/mini/corpus/train.txt runs/near-duplicates.jsonl

Of a pair's texts the words that carry meaning are the same and in the same order; they differ in articles
and the like, in the third person, in punctuation, or as `the name of the user` does from `the user name`. So
opposites, other numbers, negations and exchanged roles, which differ in as little, are not among them.
Writes JSON lines with `a`, `b` and their `group`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from simllm import files
from simllm.edits import lexicon
from simllm.edits.inflection import THIRD_PERSON
from simllm.edits.lexicon import Lexicon
from simllm.edits.words import FUNCTION_WORDS
from simllm.errors import InputError
from train.corpus.words import identity, words

_LIGHT = frozenset("the a an this that these those its their given specified provided".split())
_FEWEST = 3  # words that carry meaning: of fewer, such as "see above", texts mean too little


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.near_duplicates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=Path, help="cleaned texts, one a line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    options = parser.parse_args()
    try:
        files.not_over(options.out, [options.corpus])
        rows = list(pairs((line for _, line in files.lines(options.corpus)), lexicon.load()))
        files.write(options.out, "".join(json.dumps(row) + "\n" for row in rows))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(rows):,} pairs in {options.out}", file=sys.stderr)
    return 0


def pairs(texts: Iterable[str], known: Lexicon) -> Iterator[dict[str, str]]:
    """Each text with the one before it that has the same skeleton."""
    groups: dict[str, list[str]] = defaultdict(list)
    for text in {identity(text): text for text in texts}.values():  # punctuation alone is no difference
        if len(bones := skeleton(text, known)) >= _FEWEST:
            groups[" ".join(bones)].append(text)
    for group, same in groups.items():
        yield from ({"a": a, "b": b, "group": group} for a, b in pairwise(same))


def skeleton(text: str, known: Lexicon) -> tuple[str, ...]:
    """The words of a cleaned text that carry meaning, verbs in the third person as bases."""
    bones = [_base(word, known) for word in words(text) if word not in _LIGHT]
    if bones and bones[0].endswith("s") and not bones[0].endswith("ss"):
        bones[0] = bones[0][:-1]  # a verb that no list has
    for place in reversed([place for place, word in enumerate(bones) if word == "of" and place]):
        end = place + 1
        while end < len(bones) and bones[end] not in FUNCTION_WORDS:
            end += 1
        head, owner = bones[place - 1], bones[place + 1 : end]
        if owner and head != "number":  # the number of users is no user number
            bones[place - 1 : end] = [*owner, head]
    return tuple(bones)


def _base(word: str, known: Lexicon) -> str:
    forms = known.verb_forms.get(word)
    return forms[0] if forms and word == forms[THIRD_PERSON] else word


if __name__ == "__main__":
    sys.exit(main())
