"""Comments of a corpus that say the same in almost the same words.

    python -m train.contrastive.near_duplicates runs/mini/corpus/train.txt runs/near-duplicates.jsonl

Of a pair's texts the words that carry meaning are the same and in the same order: they differ in articles
and the like, in the third person of a verb, or as `the name of the user` does from `the user name`.
Opposites, other numbers, negations and exchanged roles differ in as little, but in words that carry
meaning. Writes JSON lines with `a`, `b` and their `group`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from simllm.io import files
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.function_words import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS
from simllm.perturb.summaries.inflection import THIRD_PERSON
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.text import clean
from train.corpus.text_identity import identity
from train.runtime.command_line import add_overwrite, check_output, exit_status

_LIGHT = frozenset("the a an this that these those its their given specified provided".split())
_MEANING = re.compile(r"[a-z0-9<>=!+*/%&|^~-]")  # signs as well: `a < b` is not `a > b`
_FEWEST = 3  # words that carry meaning: of fewer, such as "see above", texts mean too little


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.contrastive.near_duplicates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=Path, help="texts, one a line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    add_overwrite(parser)
    options = parser.parse_args()
    return exit_status(lambda: _write(options))


def _write(options: argparse.Namespace) -> None:
    check_output(options.out, options.overwrite, [options.corpus])
    texts = (clean(line) for _, line in files.lines(options.corpus))
    rows = list(pairs(texts, lexicon.load()))
    files.write(options.out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows):,} pairs in {options.out}", file=sys.stderr)


def pairs(texts: Iterable[str], known: Lexicon) -> Iterator[dict[str, str]]:
    """Each cleaned text with the one before it that has the same skeleton."""
    groups: dict[str, list[str]] = defaultdict(list)
    for text in {identity(text): text for text in texts}.values():  # punctuation alone is no difference
        if len(bones := skeleton(text, known)) >= _FEWEST:
            groups[" ".join(bones)].append(text)
    for group, same in groups.items():
        yield from ({"a": a, "b": b, "group": group} for a, b in pairwise(same))


def skeleton(text: str, known: Lexicon) -> list[str]:
    """The words of a cleaned text that carry meaning; verbs in the third person as bases."""
    words = text.split()
    bones = [
        _base(before, word, after, known)
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if _MEANING.search(word) and not (word in _LIGHT and _names(after))
    ]
    for place in reversed([place for place, word in enumerate(bones) if word == "of" and place]):
        *start, head = bones[:place]
        owner, rest = bones[place + 1 : place + 2], bones[place + 2 :]
        verb_only = len(start) == 1 and start[0] in known.verb_forms
        begins = not start or start[-1] in FUNCTION_WORDS or verb_only
        ends = not rest or rest[0] in FUNCTION_WORDS
        # Only of one word each: `the first name of a user` is not `the name of a first user`. And the
        # number of users is no user number.
        if begins and ends and _names(head) and owner and _names(owner[0]) and head != "number":
            bones = [*start, *owner, head, *rest]
    return bones


def _names(word: str) -> bool:
    return word[:1].isalnum() and word not in FUNCTION_WORDS


def _base(before: str, word: str, after: str, known: Lexicon) -> str:
    if before and before not in BEFORE_VERBS:
        return word
    forms = known.verb_forms.get(word)
    if forms and word == forms[THIRD_PERSON]:
        return forms[0] if after != "of" else word  # a noun
    is_verb = not before and after in DETERMINERS and word.endswith("s") and not forms
    return word[:-1] if is_verb else word


if __name__ == "__main__":
    sys.exit(main())
